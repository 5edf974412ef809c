-- for: owner
create or replace function jobs_internal.attempt_item(
    p_run jobs_internal.job_execution, p_step_name text, p_target_id uuid, p_task jobs_internal.task, p_whole boolean
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return execution_item(
        p_run, array[p_step_name, p_target_id::text, p_task.attempt::text], p_task.invocation_id, p_task.lifecycle,
        p_task.create_time, p_task.start_time, p_task.end_time,
        jsonb_build_object(
            'stepId', p_task.step_id, 'stepName', p_step_name, 'targetId', p_target_id, 'attempt', p_task.attempt,
            'endReason', p_task.end_reason, 'hostId', p_task.host_id, 'invocationId', p_task.invocation_id,
            'backendPid', p_task.backend_pid, 'serverVersion', p_task.server_version, 'sqlstate', p_task.sqlstate,
            'message', p_task.message, 'detail', p_task.detail, 'hint', p_task.hint, 'context', p_task.context,
            'errorPosition', p_task.error_position, 'errorFingerprint', p_task.error_fingerprint,
            'statementNo', p_task.statement_no, 'rows', p_task.rows, 'bytes', p_task.bytes,
            'timings', p_task.timings, 'blockers', p_task.blockers, 'notices', p_task.notices,
            'xactId', p_task.xact_id, 'resultHash', encode(p_task.result_hash, 'hex'),
            'resultSets', jsonb_array_length(jsonb_path_query_array(p_task.results, '$[*] ? (exists(@.columns))')))
        || case when p_whole then jsonb_build_object('results', p_task.results) else '{}' end);
end $$;
comment on function jobs_internal.attempt_item(
    jobs_internal.job_execution, text, uuid, jobs_internal.task, boolean) is
    'An attempt as REST shows it; with its rows only when a single attempt is requested.';
