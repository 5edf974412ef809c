-- for: admin
create or replace function jobs.sp_update_jobstep(
    job_name text,
    step_id integer default null,
    step_name text default null,
    new_id integer default null,
    new_name text default null,
    command_type text default null,
    command_source text default null,
    command text default null,
    credential_name text default null,
    target_group_name text default null,
    initial_retry_interval_seconds integer default null,
    maximum_retry_interval_seconds integer default null,
    retry_interval_backoff_multiplier real default null,
    retry_attempts integer default null,
    step_timeout_seconds integer default null,
    output_type text default null,
    output_credential_name text default null,
    output_server_name text default null,
    output_database_name text default null,
    output_schema_name text default null,
    output_table_name text default null,
    out job_version integer,
    max_parallelism integer default null,
    options jsonb default null,
    output_subscription_id text default null,
    output_resource_group_name text default null
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant job := lock_job(job_name);
    old constant job_step := find_jobstep(edited, step_id, step_name);
    new job_step := old;
begin
    perform check_command_kind(command_type, command_source);
    new.step_id := coalesce(new_id, old.step_id);
    new.name := coalesce(new_name, old.name);
    if credential_name is not null then
        new.credential_name := nullif(credential_name, '');
        new.credential_as_given := null;
    end if;
    if target_group_name is not null then
        new.target_group_name := target_group_name;
        new.target_group_as_given := null;
    end if;
    new.initial_retry_interval_seconds := coalesce(initial_retry_interval_seconds, old.initial_retry_interval_seconds);
    new.maximum_retry_interval_seconds := coalesce(maximum_retry_interval_seconds, old.maximum_retry_interval_seconds);
    new.retry_interval_backoff_multiplier :=
        coalesce(retry_interval_backoff_multiplier, old.retry_interval_backoff_multiplier);
    new.retry_attempts := coalesce(retry_attempts, old.retry_attempts);
    new.timeout_seconds := coalesce(step_timeout_seconds, old.timeout_seconds);
    -- Without a type there is no output.
    if output_type = '' then
        new := jsonb_populate_record(new, (
            select jsonb_object_agg(c.key, null) from jsonb_object_keys(to_jsonb(old)) c (key)
             where c.key like 'output_%'));
    end if;
    if output_credential_name is not null then
        new.output_credential_name := nullif(output_credential_name, '');
        new.output_credential_as_given := null;
    end if;
    new.output_type := nullif(coalesce(output_type, new.output_type), '');
    new.output_server_name := nullif(coalesce(output_server_name, new.output_server_name), '');
    new.output_database_name := nullif(coalesce(output_database_name, new.output_database_name), '');
    new.output_schema_name := nullif(coalesce(output_schema_name, new.output_schema_name), '');
    new.output_table_name := nullif(coalesce(output_table_name, new.output_table_name), '');
    new.output_subscription_id := nullif(coalesce(output_subscription_id, new.output_subscription_id), '');
    new.output_resource_group_name := nullif(coalesce(output_resource_group_name, new.output_resource_group_name), '');
    new.max_parallelism := nullif(coalesce(max_parallelism, old.max_parallelism), -1);
    new.options := coalesce(options, case when output_type = '' then old.options - 'output' else old.options end);
    job_version := save_step('sp_update_jobstep', edited, old, new, command);
end $$;
comment on function jobs.sp_update_jobstep(text, integer, text, integer, text, text, text, text, text, text, integer,
                                           integer, real, integer, integer, text, text, text, text, text, text, integer,
                                           jsonb, text, text) is
    'Creates a version of the job in which the passed parameters of the step are changed; '''' resets a credential '
    'or an output_ value, -1 max_parallelism; new_id moves the step. Running executions keep their version.';
