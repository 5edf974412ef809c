-- for: agent
create or replace function jobs_internal.put_step(p_job text, p_name text, p_doc jsonb, p_condition jsonb)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant job := lock_job(p_job);
    options constant jsonb := coalesce(nullif(p_doc -> 'executionOptions', 'null'), '{}');
    output constant jsonb := coalesce(nullif(p_doc -> 'output', 'null'), '{}');
    old job_step;
    new job_step;
begin
    select * into old from job_step s
     where (s.job_id, s.version) = (edited.job_id, edited.version) and lower(s.name) = lower(p_name);
    perform check_condition(p_condition, old.row_version);
    new := old;
    new.name := coalesce(old.name, p_name);
    new.step_id := coalesce((p_doc ->> 'stepId')::integer, old.step_id);
    new.credential_name := p_doc #>> '{credential,name}';
    new.credential_as_given := p_doc #>> '{credential,asGiven}';
    new.target_group_name := p_doc #>> '{targetGroup,name}';
    new.target_group_as_given := p_doc #>> '{targetGroup,asGiven}';
    new.initial_retry_interval_seconds := coalesce((options ->> 'initialRetryIntervalSeconds')::integer, 1);
    new.maximum_retry_interval_seconds := coalesce((options ->> 'maximumRetryIntervalSeconds')::integer, 120);
    new.retry_interval_backoff_multiplier := coalesce((options ->> 'retryIntervalBackoffMultiplier')::real, 2.0);
    new.retry_attempts := coalesce((options ->> 'retryAttempts')::integer, 10);
    new.timeout_seconds := coalesce((options ->> 'timeoutSeconds')::integer, 43200);
    new.max_parallelism := options ->> 'maxParallelism';
    new.output_type := coalesce(output ->> 'type', case when output <> '{}' then 'SqlDatabase' end);
    new.output_credential_name := output #>> '{credential,name}';
    new.output_credential_as_given := output #>> '{credential,asGiven}';
    new.output_subscription_id := output ->> 'subscriptionId';
    new.output_resource_group_name := output ->> 'resourceGroupName';
    new.output_server_name := output ->> 'serverName';
    new.output_database_name := output ->> 'databaseName';
    new.output_schema_name := output ->> 'schemaName';
    new.output_table_name := output ->> 'tableName';
    new.options := coalesce(nullif(p_doc -> 'options', 'null'), '{}');
    perform save_step(case when old.step_id is null then 'sp_add_jobstep' else 'sp_update_jobstep' end,
        edited, old, new, coalesce(p_doc ->> 'script', ''));
    return jsonb_build_object('created', old.step_id is null, 'item', get_item('jobs/steps', array[p_job, p_name]));
end $$;
comment on function jobs_internal.put_step(text, text, jsonb, jsonb) is
    'Creates or replaces a step; fields that the document omits get their defaults, except the position, which is '
    'kept.';
