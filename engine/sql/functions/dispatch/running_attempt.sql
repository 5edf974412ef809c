-- for: engine
create or replace function jobs_internal.running_attempt(
    p_epoch bigint, p_run uuid, p_step_id integer, p_ordinal integer
) returns table (invocation_id uuid, backend_pid integer, server_id text, database_name text, credential_id uuid)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select t.invocation_id, t.backend_pid, d.server_id, d.database_name, coalesce(s.credential_id, d.credential_id, (
               select n.credential_id from credential n, server_directory v
                where v.server_id = d.server_id and lower(n.name) = lower(v.job_credential)))
      from job_execution r
      join job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, p_step_id)
      join step_execution e on (e.run_day, e.job_execution_id, e.step_id) = (r.run_day, p_run, p_step_id)
      join snapshot_target d on (d.snapshot_id, d.ordinal) = (e.snapshot_id, p_ordinal)
      join task t on (t.run_day, t.job_execution_id, t.step_id, t.ordinal) = (r.run_day, p_run, p_step_id, p_ordinal)
     where r.job_execution_id = p_run and t.lifecycle = 'InProgress' and t.backend_pid is not null;
end $$;
comment on function jobs_internal.running_attempt(bigint, uuid, integer, integer) is
    'The session at its target in which a target''s attempt runs, if one does, and the credential that may read its '
    'state.';
