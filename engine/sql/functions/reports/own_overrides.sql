-- for: owner
create or replace function jobs_internal.own_overrides(p_run jobs_internal.job_execution) returns jsonb
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return nullif(p_run.overrides - '{limit,maxRows,rollback}'::text[], '{}');
end $$;
comment on function jobs_internal.own_overrides(jobs_internal.job_execution) is
    'The values of step options that the run has instead of those of its steps; null when there are none.';
