-- for: owner
create or replace function jobs_internal.find_target(
    p_step jobs_internal.step_execution, p_target text,
    out target jobs_internal.target_execution, out described jobs_internal.snapshot_target
)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    select d.* into described
      from snapshot_target d
     where (d.snapshot_id, d.target_id) = (p_step.snapshot_id, uuid_or_null(p_target));
    select t.* into target
      from target_execution t
     where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
           = (p_step.run_day, p_step.job_execution_id, p_step.step_id, described.ordinal);
    if target.ordinal is null then
        raise exception 'step "%" of execution % has no target %', p_step.step_name, p_step.job_execution_id, p_target
            using errcode = 'MU010';
    end if;
end $$;
comment on function jobs_internal.find_target(jobs_internal.step_execution, text) is
    'The target of a step that a path names, and its description.';
