-- for: owner
create or replace function jobs_internal.release_tasks(p_returns jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    told jsonb := '[]';
    day date;
begin
    for day in select distinct g.d from jsonb_to_recordset(p_returns) g (d date) loop
        with given as materialized (
            select g.*
              from jsonb_to_recordset(p_returns) g (d date, r uuid, s integer, o integer, a integer, i uuid,
                                                    why text, wait double precision, said text)
             where g.d = day
        -- Its day by comparison as well, which leaves the key to be the only way that looks short.
        ), gone as (
            delete from task t
             using given g
             where t.run_day >= day
               and (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt) = (g.d, g.r, g.s, g.o, g.a)
               and t.invocation_id = g.i and t.lifecycle = 'Created'
            returning g.d, g.r, g.s, g.o, g.i, g.why, g.wait, g.said
        ), weighed as (
            -- The time of one that was neither begun nor tried has not begun.
            select g.*, x.lifecycle, x.attempts, x.not_before,
                   coalesce(x.start_time, x.tried_at, case when g.wait is not null then now end)
                   + make_interval(secs => p.timeout_seconds) as deadline
              from gone g
             cross join lateral (
                   select x.* from target_execution x
                    where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (day, g.r, g.s, g.o) limit 1) x
             cross join lateral (
                   select p.timeout_seconds from job_execution r, job_step p
                    where r.job_execution_id = g.r
                      and (p.job_id, p.version, p.step_id) = (r.job_id, r.job_version, g.s) limit 1) p
        ), decided as materialized (
            select w.*,
                   case when w.wait is not null and now >= w.deadline then 'TimedOut' else w.lifecycle end as outcome,
                   case when w.wait is null then w.not_before
                        when now < w.deadline
                        then least(now + make_interval(secs => w.wait), w.deadline) end as again_at
              from weighed w
        ), target as (
            update target_execution x
               set lifecycle    = g.outcome,
                   tried_at     = coalesce(x.tried_at, now),
                   not_before   = g.again_at,
                   wait_reason  = case when g.outcome <> 'TimedOut' then g.why end,
                   end_time     = case when g.outcome = 'TimedOut' then now end,
                   -- What the server said last, if it was the server.
                   end_reason   = case when g.outcome <> 'TimedOut' then null
                                       when g.why in ('ServerFull', 'ServerStarting') then g.why
                                       when x.wait_reason in ('ServerFull', 'ServerStarting') then x.wait_reason
                                       else 'TimedOut' end,
                   last_message = case when g.outcome = 'TimedOut' and x.start_time is null
                                       then 'Timed out before it started' || coalesce(
                                                ': ' || coalesce(g.said, x.last_message), '.')
                                       else coalesce(g.said, x.last_message) end
              from decided g
             where x.run_day >= day
               and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (g.d, g.r, g.s, g.o)
               and g.wait is not null
        )
        select told || coalesce(jsonb_agg(jsonb_build_object(
                   'i', g.i, 'l', g.outcome, 'a', g.attempts, 'b', extract(epoch from g.again_at),
                   'u', extract(epoch from case when g.outcome <> 'TimedOut' then g.deadline end), 'n', null,
                   'k', 'return')), '[]')
          into told
          from decided g;
    end loop;
    return told;
end $$;
comment on function jobs_internal.release_tasks(jsonb) is
    'Deletes reservations that did not start. Where a pause is wanted, the target waits within the step''s timeout '
    'and keeps the server''s message. An invocation that is not returned was refused: no task is reserved under it.';
