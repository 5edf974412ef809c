-- for: owner
create or replace function jobs_internal.jobstep_item(
    p_path text[], p_step jobs_internal.job_step, p_row_version bigint
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return definition_item(
        p_path || p_step.name, null, p_row_version, p_step.created_by, p_step.created_at, p_step.modified_by,
        p_step.modified_at, jsonb_build_object(
            'stepId', p_step.step_id,
            'targetGroup', definition_reference(p_step.target_group_name, p_step.target_group_as_given),
            'credential', definition_reference(p_step.credential_name, p_step.credential_as_given),
            'script', (select s.body from script s where s.script_hash = p_step.script_hash),
            'executionOptions', jsonb_build_object(
                'timeoutSeconds', p_step.timeout_seconds, 'retryAttempts', p_step.retry_attempts,
                'initialRetryIntervalSeconds', p_step.initial_retry_interval_seconds,
                'maximumRetryIntervalSeconds', p_step.maximum_retry_interval_seconds,
                'retryIntervalBackoffMultiplier', p_step.retry_interval_backoff_multiplier,
                'maxParallelism', p_step.max_parallelism),
            'output', case when p_step.output_type is not null then jsonb_build_object(
                'type', p_step.output_type, 'subscriptionId', p_step.output_subscription_id,
                'resourceGroupName', p_step.output_resource_group_name, 'serverName', p_step.output_server_name,
                'databaseName', p_step.output_database_name, 'schemaName', p_step.output_schema_name,
                'tableName', p_step.output_table_name,
                'credential', definition_reference(p_step.output_credential_name, p_step.output_credential_as_given)) end,
            'options', p_step.options));
end $$;
comment on function jobs_internal.jobstep_item(text[], jobs_internal.job_step, bigint) is
    'A step below a job or a version as the node agent reads it.';
