-- for: owner
create or replace function jobs_internal.plan_targets(
    p_run jobs_internal.job_execution, p_step_id integer, p_snapshot_id uuid, p_wave_starts integer[] default '{}'
) returns integer[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update step_execution s
       set lifecycle   = 'WaitingForChildJobExecutions',
           snapshot_id = p_snapshot_id,
           waves       = cardinality(p_wave_starts) + 1
     where (s.run_day, s.job_execution_id, s.step_id) = (p_run.run_day, p_run.job_execution_id, p_step_id)
       and s.snapshot_id is null;
    if found then
        return create_target_executions(p_run, p_step_id, p_snapshot_id, p_wave_starts);
    end if;
    perform from step_execution s
      where (s.run_day, s.job_execution_id, s.step_id, s.snapshot_id)
            = (p_run.run_day, p_run.job_execution_id, p_step_id, p_snapshot_id);
    if not found then
        raise exception 'step % of execution % is not there or has other targets', p_step_id, p_run.job_execution_id
            using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.plan_targets(jobs_internal.job_execution, integer, uuid, integer[]) is
    'create_target_executions for a step that was reached before; null when its targets were planned before.';
