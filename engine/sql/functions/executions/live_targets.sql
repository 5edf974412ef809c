-- for: engine
create or replace function jobs_internal.live_targets(
    p_epoch bigint, p_run_day date, p_run uuid, p_step_id integer
) returns table (ordinal integer, lifecycle text, attempts integer, not_before timestamptz, deadline timestamptz,
                 server_id text, pool_name text, database_name text, schema_name text, worker_pool text,
                 attempt integer, host_id uuid, invocation_id uuid, task_lifecycle text, unlisted boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
set enable_hashjoin = off
set enable_sort = off
set enable_bitmapscan = off
as $$
declare
    timeout interval;
    snapshot uuid;
begin
    perform check_epoch(p_epoch);
    select e.snapshot_id into snapshot from step_execution e
     where (e.run_day, e.job_execution_id, e.step_id) = (p_run_day, p_run, p_step_id);
    select make_interval(secs => coalesce((x.overrides ->> 'timeoutSeconds')::integer, s.timeout_seconds)) into timeout
      from job_execution x
      join job_step s on (s.job_id, s.version, s.step_id) = (x.job_id, x.job_version, p_step_id)
     where x.job_execution_id = p_run;
    -- A merge join of three index scans, whatever the statistics say: they may be those of an empty table.
    return query
    select x.ordinal, x.lifecycle, x.attempts, x.not_before, coalesce(x.start_time, x.tried_at) + timeout,
           d.server_id, d.pool_name, d.database_name, d.schema_name, x.worker_pool,
           t.attempt, t.host_id, t.invocation_id, t.lifecycle, d.labels ? 'muster.unlisted'
      from target_execution x
      join snapshot_target d on d.snapshot_id = snapshot and d.ordinal = x.ordinal
      -- A subquery, since older servers do not know that rows of an outer join are in order as well.
      left join (select t.ordinal, t.attempt, t.host_id, t.invocation_id, t.lifecycle
                   from task t
                  where t.run_day = p_run_day and t.job_execution_id = p_run and t.step_id = p_step_id
                    and t.lifecycle in ('Created', 'InProgress')
                  order by t.ordinal offset 0) t on t.ordinal = x.ordinal
     where x.run_day = p_run_day and x.job_execution_id = p_run and x.step_id = p_step_id
       and x.end_time is null;
end $$;
comment on function jobs_internal.live_targets(bigint, date, uuid, integer) is
    'The unfinished targets of a step, in their order, each with its reservation or running attempt.';
