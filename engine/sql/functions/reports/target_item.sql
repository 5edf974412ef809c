-- for: owner
create or replace function jobs_internal.target_item(
    p_run jobs_internal.job_execution, p_step_name text, p_target jobs_internal.target_execution,
    p_described jobs_internal.snapshot_target
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return execution_item(
        p_run, array[p_step_name, p_described.target_id::text], p_target.target_execution_id, p_target.lifecycle,
        p_target.create_time, p_target.start_time, p_target.end_time,
        jsonb_build_object(
            'stepId', p_target.step_id, 'stepName', p_step_name, 'currentAttempts', p_target.attempts,
            'currentAttemptStartTime', iso_time(p_target.attempt_start_time), 'lastMessage', p_target.last_message,
            'targetId', p_described.target_id,
            'target', jsonb_strip_nulls(jsonb_build_object(
                'type', p_described.target_type, 'serverName', p_described.server_name,
                'databaseName', p_described.database_name, 'schemaName', p_described.schema_name)),
            'wave', p_target.wave, 'rowsAffected', p_target.rows_affected, 'endReason', p_target.end_reason,
            'waitReason', (select target_wait_reason(e, p_target) from step_execution e
                            where (e.run_day, e.job_execution_id, e.step_id)
                                  = (p_target.run_day, p_target.job_execution_id, p_target.step_id))));
end $$;
comment on function jobs_internal.target_item(
    jobs_internal.job_execution, text, jobs_internal.target_execution, jobs_internal.snapshot_target) is
    'A target of a step of a run as REST shows it.';
