-- for: engine
create or replace function jobs_internal.is_step_of_origin(p_epoch bigint, p_run uuid, p_step_id integer) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return exists (
        select from job_execution x
          join job_execution o on o.job_execution_id = x.rerun_of
          join job_step s on (s.job_id, s.version, s.step_id) = (x.job_id, x.job_version, p_step_id)
          join step_execution e
            on (e.run_day, e.job_execution_id) = (o.run_day, o.job_execution_id)
           and lower(e.step_name) = lower(s.name) and e.snapshot_id is not null
         where x.job_execution_id = p_run);
end $$;
comment on function jobs_internal.is_step_of_origin(bigint, uuid, integer) is
    'Whether the origin of a rerun had targets in this step.';
