-- for: engine
create or replace function jobs_internal.unlisted_document(p_epoch bigint, p_run uuid, p_step_id integer) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return (
        select resolution_document(s.target_group_id, s.groups)
          from job_execution x
          join step_execution e on (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id)
          join snapshot s on s.snapshot_id = e.snapshot_id
         where x.job_execution_id = p_run and e.step_id = p_step_id and s.groups is not null);
end $$;
comment on function jobs_internal.unlisted_document(bigint, uuid, integer) is
    'The document of the step''s target group, with the members that it had when the step began; null when the group '
    'was changed while the step was planned, or when every server was listed.';
