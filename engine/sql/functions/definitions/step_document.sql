-- for: engine
create or replace function jobs_internal.step_document(p_job_id uuid, p_version integer, p_step_id integer)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    document jsonb;
begin
    select jsonb_build_object(
               'jobName', j.name, 'stepName', s.name, 'stepId', s.step_id, 'targetGroupName', s.target_group_name,
               'script', c.body, 'timeoutSeconds', s.timeout_seconds, 'retryAttempts', s.retry_attempts,
               'initialRetryIntervalSeconds', s.initial_retry_interval_seconds,
               'maximumRetryIntervalSeconds', s.maximum_retry_interval_seconds,
               'retryIntervalBackoffMultiplier', s.retry_interval_backoff_multiplier,
               'options', s.options, 'contentHash', encode(s.content_hash, 'hex'),
               'output', case when s.output_type is not null then jsonb_build_object(
                   'serverName', s.output_server_name, 'databaseName', s.output_database_name,
                   'schemaName', s.output_schema_name, 'tableName', s.output_table_name) end)
      into document
      from job_step s
      join job j on j.job_id = s.job_id
      join script c on c.script_hash = s.script_hash
     where (s.job_id, s.version, s.step_id) = (p_job_id, p_version, p_step_id);
    if not found then
        raise exception 'version % of job % has no step %', p_version, p_job_id, p_step_id using errcode = 'MU010';
    end if;
    return document;
end $$;
comment on function jobs_internal.step_document(uuid, integer, integer) is
    'All that running a step needs except its target; only the job''s name can change.';
