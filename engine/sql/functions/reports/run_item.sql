-- for: owner
create or replace function jobs_internal.run_item(p_run jobs_internal.job_execution) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return execution_item(
        p_run, '{}', p_run.job_execution_id, p_run.lifecycle, p_run.create_time, p_run.start_time, p_run.end_time,
        jsonb_build_object(
            'currentAttempts', p_run.attempt, 'targets', run_targets(p_run), 'rowsAffected', p_run.rows_affected,
            'lastMessage', p_run.last_message, 'waitReason', p_run.wait_reason,
            'endReason', p_run.end_reason, 'origin', p_run.origin, 'slot', iso_time(p_run.slot),
            'actor', p_run.actor, 'door', p_run.door, 'rerunOf', p_run.rerun_of,
            'planOf', p_run.plan_of, 'limit', p_run.overrides -> 'limit',
            'overrides', own_overrides(p_run), 'nextAttemptTime', iso_time(p_run.not_before),
            'runAttempts', case when p_run.attempt > 0 then run_attempt_items(p_run.job_execution_id) end));
end $$;
comment on function jobs_internal.run_item(jobs_internal.job_execution) is 'A run as REST shows it.';
