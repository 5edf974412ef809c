-- for: owner
create or replace function jobs_internal.step_item(
    p_run jobs_internal.job_execution, p_step jobs_internal.step_execution
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return execution_item(
        p_run, array[p_step.step_name], p_step.step_execution_id, p_step.lifecycle,
        p_step.create_time, p_step.start_time, p_step.end_time,
        jsonb_build_object(
            'stepId', p_step.step_id, 'stepName', p_step.step_name, 'currentAttempts', 0,
            'lastMessage', p_step.last_message, 'waitReason', p_step.wait_reason, 'endReason', p_step.end_reason,
            'wave', p_step.wave, 'waves', p_step.waves, 'haltRule', p_step.halt_rule,
            'notBefore', iso_time(p_step.not_before), 'rowsAffected', p_step.rows_affected));
end $$;
comment on function jobs_internal.step_item(jobs_internal.job_execution, jobs_internal.step_execution) is
    'A step of a run as REST shows it.';
