-- What must hold in a control database after any fault. Each query names what is broken; no row means all is well.
-- The numbers are those of the fault model; R.. are our own.

-- name: I09_attempts_of_a_target_never_overlap
select concat_ws('/', a.job_execution_id, a.step_id, a.ordinal, a.attempt, b.attempt) as what
  from jobs_internal.task a
  join jobs_internal.task b using (run_day, job_execution_id, step_id, ordinal)
 where b.attempt > a.attempt
   and coalesce(b.start_time, b.create_time) < coalesce(a.end_time, 'infinity');

-- name: I10_epochs_never_go_back
select concat_ws('/', job_execution_id, step_id, ordinal, attempt) as what
  from (select t.*, lag(epoch) over (partition by run_day, job_execution_id, step_id, ordinal order by attempt) as before
          from jobs_internal.task t) t
 where epoch < before;

-- name: I11_one_attempt_lives
select concat_ws('/', job_execution_id, step_id, ordinal) as what
  from jobs_internal.task
 where lifecycle in ('Created', 'InProgress')
 group by job_execution_id, step_id, ordinal
having count(*) > 1;

-- name: I12_a_success_is_its_last_attempts
-- Succeeded, exactly when one attempt did and no other came after it.
select concat_ws('/', x.job_execution_id, x.step_id, x.ordinal, x.lifecycle) as what
  from jobs_internal.target_execution x
 cross join lateral (
       select count(*) filter (where t.lifecycle = 'Succeeded') as successes,
              coalesce((array_agg(t.lifecycle order by t.attempt desc))[1] = 'Succeeded', false) as last
         from jobs_internal.task t
        where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
              = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)) t
 where case x.lifecycle when 'Succeeded' then not (t.successes = 1 and t.last) else t.successes > 0 end;

-- name: I13_nothing_begins_after_the_end
select concat_ws('/', 'task', t.job_execution_id, t.step_id, t.ordinal, t.attempt) as what
  from jobs_internal.task t
  join jobs_internal.target_execution x using (run_day, job_execution_id, step_id, ordinal)
 where greatest(t.create_time, t.start_time) > x.end_time
union all
select concat_ws('/', 'target', x.job_execution_id, x.step_id, x.ordinal)
  from jobs_internal.target_execution x
  join jobs_internal.step_execution e using (run_day, job_execution_id, step_id)
 where greatest(x.create_time, x.start_time) > e.end_time
union all
select concat_ws('/', 'step', e.job_execution_id, e.step_id)
  from jobs_internal.step_execution e
  join jobs_internal.job_execution r using (run_day, job_execution_id)
 where greatest(e.create_time, e.start_time) > r.end_time;

-- name: I14_attempts_are_bounded
-- Those that count against the step's retries.
select concat_ws('/', x.job_execution_id, x.step_id, x.ordinal, x.attempts, x.free_attempts) as what
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (run_day, job_execution_id)
  join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
 where x.attempts - x.free_attempts > 1 + s.retry_attempts;

-- name: I15_everything_ends_in_time
-- The step's time, or the wish to cancel, and 30 seconds.
select concat_ws('/', 'target', x.job_execution_id, x.step_id, x.ordinal, x.lifecycle) as what
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (run_day, job_execution_id)
  join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
 where x.end_time is null
   and (coalesce(x.start_time, x.tried_at) + make_interval(secs => s.timeout_seconds + 30) < clock_timestamp()
        or x.cancel_requested_at + interval '30 s' < clock_timestamp())
union all
select concat_ws('/', 'step', e.job_execution_id, e.step_id, e.lifecycle)
  from jobs_internal.step_execution e
 where e.end_time is null
   and (e.cancel_requested_at + interval '30 s' < clock_timestamp()
        or (select max(coalesce(x.end_time, 'infinity')) from jobs_internal.target_execution x
             where (x.run_day, x.job_execution_id, x.step_id) = (e.run_day, e.job_execution_id, e.step_id))
           + interval '30 s' < clock_timestamp() and e.lifecycle <> 'WaitingForRetry')
union all
select concat_ws('/', 'run', r.job_execution_id, r.lifecycle)
  from jobs_internal.job_execution r
 where r.end_time is null
   and (r.cancel_requested_at + interval '30 s' < clock_timestamp()
        or r.lifecycle = 'WaitingForRetry' and r.not_before + interval '30 s' < clock_timestamp())
union all
select concat_ws('/', 'cancellation', c.cancellation_id)
  from jobs_internal.cancellation c
 where c.completed_at is null
   and c.requested_at + interval '30 s' < clock_timestamp();

-- name: I16_parents_agree_with_their_children
-- They end after them and as the rule says. What was cancelled between two steps did not do what it should.
with child as (
    select e.run_day, e.job_execution_id, e.step_id, e.lifecycle as parent, e.end_time as parent_end,
           coalesce(e.cancel_requested_at, r.cancel_requested_at) is not null as cancelled,
           x.lifecycle, x.end_time, false as incomplete
      from jobs_internal.step_execution e
      join jobs_internal.job_execution r using (run_day, job_execution_id)
      join jobs_internal.target_execution x using (run_day, job_execution_id, step_id)
     where e.end_time is not null
    union all
    select r.run_day, r.job_execution_id, null, r.lifecycle, r.end_time, r.cancel_requested_at is not null,
           e.lifecycle, e.end_time,
           r.cancel_requested_at is not null and exists (
               select from jobs_internal.job_step s
                where (s.job_id, s.version) = (r.job_id, r.job_version)
                  and not exists (select from jobs_internal.step_execution o
                                   where (o.job_execution_id, o.step_id) = (r.job_execution_id, s.step_id)))
      from jobs_internal.job_execution r
      join jobs_internal.step_execution e using (run_day, job_execution_id)
     where r.end_time is not null
), family as (
    select run_day, job_execution_id, step_id, parent, parent_end,
           bool_or(end_time is null) as lives, max(end_time) as last_end,
           case when bool_or(cancelled) and bool_or(lifecycle = 'Canceled') then 'Canceled'
                when bool_or(lifecycle = 'Failed') then 'Failed'
                when bool_or(lifecycle = 'TimedOut') then 'TimedOut'
                when bool_or(lifecycle = 'Canceled') then 'Canceled'
                when bool_or(incomplete) then 'Canceled'
                when bool_and(lifecycle = 'Skipped') then 'Skipped'
                when bool_or(lifecycle in ('Skipped', 'SucceededWithSkipped')) then 'SucceededWithSkipped'
                else 'Succeeded' end as due
      from child
     group by run_day, job_execution_id, step_id, parent, parent_end
)
select concat_ws('/', job_execution_id, step_id, parent, 'not', due) as what
  from family
 where lives or parent_end < last_end
    or parent <> due
       -- Of a run that was cancelled while it waited for its next attempt, the repetition is what was cancelled.
       and not (parent = 'Canceled' and exists (
           select from jobs_internal.run_attempt a
             join jobs_internal.job_execution r on (r.job_execution_id, r.attempt) = (a.job_execution_id, a.number)
            where a.job_execution_id = family.job_execution_id and a.next_start_time is not null));

-- name: I17_each_slot_is_decided_once_and_each_fired_one_has_its_run
select concat_ws(' ', coalesce(s.job_id, r.job_id), coalesce(s.slot, r.slot)) as what
  from jobs_internal.slot s
  full join (select * from jobs_internal.job_execution where origin = 'slot') r
    on (r.job_id, r.slot) = (s.job_id, s.slot)
 group by coalesce(s.job_id, r.job_id), coalesce(s.slot, r.slot)
having count(distinct s.ctid) <> 1
    or count(distinct r.job_execution_id) <> count(*) filter (where s.outcome = 'fired')
    or bool_or(s.outcome = 'fired' and s.job_execution_id is distinct from r.job_execution_id);

-- name: R01_nothing_lives_where_all_is_over
select concat_ws('/', 'task', t.job_execution_id, t.step_id, t.ordinal, t.attempt, t.lifecycle) as what
  from jobs_internal.task t
  join jobs_internal.target_execution x using (run_day, job_execution_id, step_id, ordinal)
  join jobs_internal.step_execution e using (run_day, job_execution_id, step_id)
  join jobs_internal.job_execution r using (run_day, job_execution_id)
 where t.end_time is null
   and coalesce(x.end_time, e.end_time, r.end_time) is not null
union all
select concat_ws('/', 'target', x.job_execution_id, x.step_id, x.ordinal, x.lifecycle)
  from jobs_internal.target_execution x
  join jobs_internal.step_execution e using (run_day, job_execution_id, step_id)
  join jobs_internal.job_execution r using (run_day, job_execution_id)
 where x.end_time is null
   and coalesce(e.end_time, r.end_time) is not null;

-- name: R02_a_reservation_belongs_to_something_that_lives
-- When everything is over none is left, and neither is a task of nothing.
select concat_ws('/', t.job_execution_id, t.step_id, t.ordinal, t.attempt) as what
  from jobs_internal.task t
 where t.lifecycle = 'Created'
   and not exists (select from jobs_internal.target_execution x
                    where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                          = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                      and x.end_time is null)
union all
select concat_ws('/', t.job_execution_id, t.step_id, t.ordinal, t.attempt)
  from jobs_internal.task t
 where t.lifecycle = 'Created'
   and not exists (select from jobs_internal.job_execution r where r.end_time is null);

-- name: R03_attempts_are_numbered_without_a_gap
-- The target's count is that of the attempts that began; a reservation is none.
select concat_ws('/', x.job_execution_id, x.step_id, x.ordinal, x.attempts, 'not', t.number, t.last) as what
  from jobs_internal.target_execution x
 cross join lateral (
       select count(*) as number, coalesce(max(t.attempt), 0) as last
         from jobs_internal.task t
        where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
              = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
          and t.start_time is not null) t
 where x.attempts <> t.number or x.attempts <> t.last;

-- name: R04_a_target_tells_what_its_attempts_did
-- One that runs has an attempt that runs; one that waits, or is over, has none, and says when and how it ended.
select concat_ws('/', x.job_execution_id, x.step_id, x.ordinal, x.lifecycle) as what
  from jobs_internal.target_execution x
  left join jobs_internal.task t
    on (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
       = (x.run_day, x.job_execution_id, x.step_id, x.ordinal, x.attempts)
 where case x.lifecycle
       when 'InProgress' then t.lifecycle is distinct from 'InProgress'
       when 'WaitingForRetry' then t.end_time is null
       when 'Created' then x.attempts > 0
       when 'Skipped' then x.attempts > 0
       when 'Succeeded' then t.end_time is distinct from x.end_time
       when 'Failed' then t.lifecycle is distinct from 'Failed' or t.end_time <> x.end_time
       else x.attempts > 0 and t.end_time is null end;

-- name: R05_the_ledger_has_the_newest_outcome
-- Of what a job's step did to a target; a target that no attempt decided about is no outcome. Two may end at once.
with newest as (
    select *
      from (select r.job_id, e.content_hash, d.target_id, x.lifecycle, x.end_reason, x.job_execution_id, x.step_id,
                   rank() over (partition by r.job_id, e.content_hash, d.target_id order by x.end_time desc) as place
              from jobs_internal.target_execution x
              join jobs_internal.step_execution e using (run_day, job_execution_id, step_id)
              join jobs_internal.job_execution r using (run_day, job_execution_id)
              join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
              join jobs_internal.task t
                on (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                   = (x.run_day, x.job_execution_id, x.step_id, x.ordinal, x.attempts)
             where t.end_time = x.end_time) x
     where place = 1
), agreed as (
    select job_id, content_hash, target_id
      from newest n
      join jobs_internal.target_ledger l using (job_id, content_hash, target_id)
     where (n.lifecycle, n.job_execution_id, n.step_id) = (l.lifecycle, l.job_execution_id, l.step_id)
       and n.end_reason is not distinct from l.end_reason
)
select concat_ws(' ', 'job', job_id, 'target', target_id) as what
  from (select job_id, content_hash, target_id from newest
        union
        select job_id, content_hash, target_id from jobs_internal.target_ledger
        except
        select job_id, content_hash, target_id from agreed) x;

-- name: R06_nobody_who_is_gone_has_a_task
-- A host that ended, or is missing, is missed: what it had belongs to others after 30 seconds.
select concat_ws('/', t.job_execution_id, t.step_id, t.ordinal, t.attempt, t.host_id) as what
  from jobs_internal.task t
  left join jobs_internal.host h using (host_id)
 where t.end_time is null
   and (h.host_id is null or h.ended_at + interval '30 s' < clock_timestamp());

-- name: R07_waves_follow_each_other
-- No target starts before every target of an earlier wave has ended.
select concat_ws('/', x.job_execution_id, x.step_id, x.ordinal, x.wave) as what
  from jobs_internal.target_execution x
  join jobs_internal.target_execution earlier using (run_day, job_execution_id, step_id)
 where earlier.wave < x.wave and x.start_time < coalesce(earlier.end_time, 'infinity');

-- name: R08_nothing_starts_while_a_step_is_halted
select concat_ws('/', t.job_execution_id, t.step_id, t.ordinal, t.attempt) as what
  from jobs_internal.task t
  join jobs_internal.step_execution e using (run_day, job_execution_id, step_id)
 where t.start_time > e.halted_at;

-- name: R09_a_target_goes_on_after_the_step_before
-- With advance perTarget: after its success there, or after the end of the step if it took no part; and only a target
-- that did not succeed is skipped for it.
with chained as (
    select x.*, r.rerun_of is not null as rerun, e.end_time as previous_end, o.target_id is not null as matched,
           b.end_time as before_end, b.lifecycle as before,
           coalesce(p.options ->> 'onFailure' = 'continue', false) as continues
      from jobs_internal.target_execution x
      join jobs_internal.job_execution r using (run_day, job_execution_id)
      join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
      join jobs_internal.job_step p on (p.job_id, p.version, p.step_id) = (r.job_id, r.job_version, x.step_id - 1)
      join jobs_internal.step_execution e
        on (e.run_day, e.job_execution_id, e.step_id) = (x.run_day, x.job_execution_id, x.step_id - 1)
      join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
      left join jobs_internal.snapshot_target o on (o.snapshot_id, o.target_id) = (e.snapshot_id, d.target_id)
      left join jobs_internal.target_execution b
        on (b.run_day, b.job_execution_id, b.step_id, b.ordinal)
           = (x.run_day, x.job_execution_id, x.step_id - 1, o.ordinal)
     where s.options ->> 'advance' = 'perTarget'
)
select concat_ws('/', c.job_execution_id, c.step_id, c.ordinal, t.attempt, c.before) as what
  from chained c
  join jobs_internal.task t using (run_day, job_execution_id, step_id, ordinal)
 where case when c.matched then t.create_time < coalesce(c.before_end, 'infinity')
                             or (c.before <> 'Succeeded' and not (c.continues and c.before <> 'Skipped'))
            else not c.rerun and t.create_time < coalesce(c.previous_end, 'infinity') end
union all
select concat_ws('/', c.job_execution_id, c.step_id, c.ordinal, c.before)
  from chained c
 where c.end_reason = 'PreviousStepNotSucceeded' and c.before = 'Succeeded';

-- name: R10_a_run_agrees_with_its_attempts
-- One runs exactly while the run is in progress; they follow each other when they are due; they count each success once,
-- and no limit is exceeded.
select concat_ws('/', r.job_execution_id, r.lifecycle, r.attempt, a.running, a.newly, s.succeeded) as what
  from jobs_internal.job_execution r
 cross join lateral (
       select count(*) as number, count(*) filter (where a.end_time is null) as running,
              coalesce(sum(a.newly_succeeded), 0) as newly,
              count(*) filter (where a.newly_succeeded = 0) as without_progress,
              count(*) filter (where a.newly_succeeded > 0 and a.lifecycle = 'Failed') as with_progress
         from jobs_internal.run_attempt a where a.job_execution_id = r.job_execution_id) a
 cross join lateral (
       select count(*) filter (where x.lifecycle = 'Succeeded') as succeeded
         from jobs_internal.target_execution x
        where (x.run_day, x.job_execution_id) = (r.run_day, r.job_execution_id)) s
 where r.run_attempts is not null
   and (a.running <> (r.lifecycle in ('InProgress', 'WaitingForChildJobExecutions'))::int
        or a.number <> r.attempt
        or r.end_time is not null and a.number > 0 and a.newly <> s.succeeded
        or a.without_progress > (r.run_attempts ->> 'maxWithoutProgress')::int
        or a.with_progress > (r.run_attempts ->> 'maxWithProgress')::int)
union all
select concat_ws('/', a.job_execution_id, a.number, a.start_time, b.next_start_time)
  from jobs_internal.run_attempt a
  join jobs_internal.run_attempt b on (b.job_execution_id, b.number) = (a.job_execution_id, a.number - 1)
 where b.lifecycle <> 'Failed' or b.next_start_time is null
    or a.start_time < greatest(b.end_time, b.next_start_time - interval '1 s');
