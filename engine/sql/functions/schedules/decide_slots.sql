-- for: engine
create or replace function jobs_internal.decide_slots(
    p_epoch bigint, p_jobs uuid[], p_row_versions bigint[], p_next_slots timestamptz[],
    p_slot_jobs uuid[], p_slots timestamptz[], p_outcomes text[], p_reasons text[],
    out jobs integer, out fired integer, out skipped integer, out coalesced integer, out missed integer
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    today constant date := (now at time zone 'UTC')::date;
    account instance;
    locked_jobs uuid[];
    settled uuid[];
begin
    perform check_epoch(p_epoch);
    select * into account from instance;
    -- A decision is valid for the job as it was read. An account that is being deleted decides nothing.
    locked_jobs := array(
        select j.job_id
          from unnest(p_jobs, p_row_versions) g (job_id, row_version)
          join job j on j.job_id = g.job_id
         where j.row_version = g.row_version and j.enabled and j.deleted_at is null and not j.system
           and not account.draining
         order by j.job_id
           for no key update of j skip locked);
    if 'fired' = any(p_outcomes) then
        perform ensure_partitions(today);
    end if;
    with decision as (
        select d.job_id, d.slot, d.outcome, j.version, j.priority,
               coalesce(x.job_execution_id, gen_random_uuid()) as run,
               case when d.outcome = 'fired' then h.held
                    when j.schedule_type = 'Once' then coalesce(h.held, d.reason) else d.reason end as reason,
               j.schedule_type = 'Once' and d.outcome = 'fired' and h.held is not null as waits
          from unnest(p_slot_jobs, p_slots, p_outcomes, p_reasons) d (job_id, slot, outcome, reason)
          join job j on j.job_id = d.job_id
          left join job_execution x on (x.job_id, x.slot) = (d.job_id, d.slot)
         cross join lateral (
               select case when account.paused then 'AccountPaused'
                           when j.paused then 'JobPaused'
                           when not exists (select from job_step s where (s.job_id, s.version) = (j.job_id, j.version))
                           then 'NoSteps' end as held) h
         where d.job_id = any(locked_jobs)
    ), decided as (
        insert into slot (job_id, slot, outcome, reason, job_execution_id, decided_at)
        select w.job_id, w.slot, case when w.outcome <> 'fired' then w.outcome
                                      when w.reason is null then 'fired' else 'skipped' end,
               w.reason, case when w.outcome = 'fired' and w.reason is null then w.run end, now
          from decision w
         where not w.waits
        on conflict do nothing
        returning slot.job_id, slot.slot, slot.outcome, slot.job_execution_id
    ), started as (
        insert into job_execution (job_execution_id, job_id, job_version, run_day, origin, slot, actor, door, priority,
                                   create_time)
        select w.run, w.job_id, w.version, today, 'slot', w.slot, 'schedule', 'engine', w.priority, now
          from decided d
          join decision w on (w.job_id, w.slot) = (d.job_id, d.slot)
         where d.outcome = 'fired'
        on conflict do nothing
    ), looked_at as (
        -- The only slot of a job of type Once stays undecided while it may still run: the call that removes the obstacle
        -- notifies the scheduler, and this call finds when it is too late.
        update job j
           set next_slot = case when exists (select from decision w where w.job_id = j.job_id and w.waits)
                                then now + interval '1 minute' else coalesce(g.next_slot, 'infinity') end
          from unnest(p_jobs, p_next_slots) g (job_id, next_slot)
         where j.job_id = g.job_id
           and j.job_id = any(locked_jobs)
    )
    select cardinality(locked_jobs), count(*) filter (where d.outcome = 'fired'),
           count(*) filter (where d.outcome = 'skipped'), count(*) filter (where d.outcome = 'coalesced'),
           count(*) filter (where d.outcome = 'missed'), array_agg(d.job_id)
      into jobs, fired, skipped, coalesced, missed, settled
      from decided d;
    if fired + missed > 0 then
        update job j
           set enabled     = false,
               next_slot   = null,
               row_version = nextval('row_version'),
               modified_by = 'schedule',
               modified_at = now
         where j.job_id = any(settled)
           and j.schedule_type = 'Once';
    end if;
    if fired > 0 then
        perform pg_notify('muster_execution', '');
    end if;
end $$;
comment on function jobs_internal.decide_slots(
    bigint, uuid[], bigint[], timestamptz[], uuid[], timestamptz[], text[], text[]) is
    'Records the decisions about slots of jobs that have not changed since they were read, starts a run for each '
    'slot that fires, and sets the next slot. A job of type Once whose slot is decided is disabled; while it can''t '
    'start, its slot stays undecided until it is too late. Repeating the call is harmless: a slot is decided once. '
    'Returns how many slots got each decision.';
