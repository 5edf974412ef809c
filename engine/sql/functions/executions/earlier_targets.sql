-- for: engine
create or replace function jobs_internal.earlier_targets(p_epoch bigint, p_run uuid, p_step_id integer)
returns table (server_id text, database_name text, schema_name text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select distinct d.server_id, d.database_name, d.schema_name
      from job_execution x
      join step_execution e on (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id) and e.step_id < p_step_id
      join snapshot_target d on d.snapshot_id = e.snapshot_id
     where x.job_execution_id = p_run;
end $$;
comment on function jobs_internal.earlier_targets(bigint, uuid, integer) is
    'The targets of the steps of a run before this one.';
