-- for: owner
create or replace function jobs_internal.release_tasks(p_releases jobs_internal.task_release[])
returns setof jobs_internal.completion_item
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    day date;
begin
    for day in select distinct r.run_day from unnest(p_releases) r loop
        perform check_item_day(day);
        return query
        -- The day is also compared by >=, so that the planner sees the primary key as the only short way.
        with released as (
            delete from task t
             using unnest(p_releases) r
             where r.run_day = day and t.run_day >= day
               and (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                   = (r.run_day, r.job_execution_id, r.step_id, r.ordinal, r.attempt)
               and t.invocation_id = r.invocation_id and t.lifecycle = 'Created'
            returning r.*
        ), item as (
            -- The timeout of a target begins with its first attempt or try.
            select r.*, x.lifecycle, x.attempts, x.not_before,
                   coalesce(x.start_time, x.tried_at, case when r.pause_seconds is not null then now end)
                   + make_interval(secs => p.timeout_seconds) as deadline
              from released r
             cross join lateral (
                   select x.* from target_execution x
                    where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                          = (day, r.job_execution_id, r.step_id, r.ordinal) limit 1) x
             cross join lateral (
                   select coalesce((e.overrides ->> 'timeoutSeconds')::integer, p.timeout_seconds) as timeout_seconds
                     from job_execution e, job_step p
                    where e.job_execution_id = r.job_execution_id
                      and (p.job_id, p.version, p.step_id) = (e.job_id, e.job_version, r.step_id) limit 1) p
        ), decision as materialized (
            select i.*,
                   case when i.pause_seconds is not null and now >= i.deadline then 'TimedOut'
                        else i.lifecycle end as outcome,
                   case when i.pause_seconds is null then i.not_before
                        when now < i.deadline
                        then least(now + make_interval(secs => i.pause_seconds), i.deadline) end as next_attempt_at
              from item i
        ), updated_target as (
            update target_execution x
               set lifecycle    = d.outcome,
                   tried_at     = coalesce(x.tried_at, now),
                   not_before   = d.next_attempt_at,
                   wait_reason  = case when d.outcome <> 'TimedOut' then d.wait_reason end,
                   end_time     = case when d.outcome = 'TimedOut' then now end,
                   -- The server's last reason, if the target waited for its server.
                   end_reason   = case when d.outcome <> 'TimedOut' then null
                                       when d.wait_reason in ('ServerFull', 'ServerStarting') then d.wait_reason
                                       when x.wait_reason in ('ServerFull', 'ServerStarting') then x.wait_reason
                                       else 'TimedOut' end,
                   last_message = case when d.outcome = 'TimedOut' and x.start_time is null
                                       then 'Timed out before it started' || coalesce(
                                                ': ' || coalesce(d.message, x.last_message), '.')
                                       else coalesce(d.message, x.last_message) end
              from decision d
             where x.run_day >= day
               and (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                   = (d.run_day, d.job_execution_id, d.step_id, d.ordinal)
               and d.pause_seconds is not null
        )
        select d.invocation_id, 'release', d.outcome, d.attempts,
               extract(epoch from d.next_attempt_at)::double precision,
               case when d.outcome <> 'TimedOut' then extract(epoch from d.deadline)::double precision end,
               null::text, null::text, null::text, null::text
          from decision d;
    end loop;
end $$;
comment on function jobs_internal.release_tasks(jobs_internal.task_release[]) is
    'Deletes reservations that did not start. Where a pause is wanted, the target waits within the step''s timeout '
    'and keeps the server''s message. An invocation that is not returned was refused: no task is reserved under it.';
