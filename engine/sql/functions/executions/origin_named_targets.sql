-- for: engine
create or replace function jobs_internal.origin_named_targets(p_epoch bigint, p_run uuid) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return exists (
        with recursive origin as (
            select x.job_execution_id, x.rerun_of, x.plan_of from job_execution x where x.job_execution_id = p_run
            union all
            select x.job_execution_id, x.rerun_of, x.plan_of
              from job_execution x
              join origin o on x.job_execution_id = o.rerun_of
        )
        select from origin o
          join chosen_target t on t.job_execution_id = o.job_execution_id
         where o.rerun_of is null and o.plan_of is null);
end $$;
comment on function jobs_internal.origin_named_targets(bigint, uuid) is
    'Whether the caller of the run that a rerun goes back to named its targets, so that no group has to contain them.';
