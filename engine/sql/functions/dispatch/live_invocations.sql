-- for: engine
create or replace function jobs_internal.live_invocations(p_epoch bigint) returns setof uuid
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    days constant date[] := array(select distinct x.run_day from job_execution x where x.end_time is null);
begin
    perform check_epoch(p_epoch);
    return query
    select t.invocation_id
      from task t
     where t.run_day = any(days) and t.lifecycle in ('Created', 'InProgress');
end $$;
comment on function jobs_internal.live_invocations(bigint) is
    'The invocations of all tasks that are reserved or run.';
