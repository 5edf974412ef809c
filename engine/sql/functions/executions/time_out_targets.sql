-- for: engine
create or replace function jobs_internal.time_out_targets(
    p_epoch bigint, p_run uuid, p_step_id integer, p_ordinals integer[]
) returns setof integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
begin
    perform check_epoch(p_epoch);
    perform lock_dispatch();
    -- The day is also compared by >=, so that the planner sees the primary key as the only short way.
    return query
    with waiting as materialized (
        select day as d, p_run as r, p_step_id as s, o
          from unnest(p_ordinals) o
         where not exists (select from task t
                            where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id
                              and t.ordinal = o and t.lifecycle in ('Created', 'InProgress'))
    )
    update target_execution x
       set lifecycle    = 'TimedOut',
           end_time     = clock_timestamp(),
           repeatable   = true,
           not_before   = null,
           wait_reason  = null,
           end_reason   = case when x.wait_reason in ('ServerFull', 'ServerStarting') then x.wait_reason
                                else 'TimedOut' end,
           last_message = case when x.start_time is null
                               then 'Timed out before it started' || coalesce(': ' || x.last_message, '.')
                               else concat_ws(' ', 'Its time ran out before the next attempt.',
                                              'Last error: ' || nullif(x.last_message, '')) end
      from waiting w
     where x.run_day >= day
       and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (w.d, w.r, w.s, w.o)
       and x.end_time is null
       and coalesce(x.start_time, x.tried_at)
           + (select make_interval(secs => coalesce((r.overrides ->> 'timeoutSeconds')::integer, s.timeout_seconds))
                from job_execution r
                join job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, p_step_id)
               where r.job_execution_id = p_run) <= clock_timestamp()
    returning x.ordinal;
end $$;
comment on function jobs_internal.time_out_targets(bigint, uuid, integer, integer[]) is
    'Ends those of the targets that wait and whose timeout has passed, and returns them. Their message holds the '
    'last attempt''s error, or that of the server that had no room.';
