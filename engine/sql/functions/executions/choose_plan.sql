-- for: owner
create or replace function jobs_internal.choose_plan(p_run jobs_internal.job_execution) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- The history of the run may be deleted before the plan expires.
    update plan p set document = p.document || jsonb_build_object('jobExecutionId', p_run.job_execution_id)
     where p.plan_id = p_run.plan_of;
    insert into chosen_target (job_execution_id, step_id, target_id, target_type, server_id, server_name, pool_name,
                               database_name, schema_name, labels, credential_id, rule)
    select p_run.job_execution_id, p.step_id, d.target_id, d.target_type, d.server_id, d.server_name, d.pool_name,
           d.database_name, d.schema_name, d.labels, d.credential_id, d.rule
      from plan_snapshot p
      join snapshot_target d on d.snapshot_id = p.snapshot_id
     where p.plan_id = p_run.plan_of;
end $$;
comment on function jobs_internal.choose_plan(jobs_internal.job_execution) is
    'Copies the targets of a plan, so that the run does not need the plan any more, and notes in the plan that it was started.';
