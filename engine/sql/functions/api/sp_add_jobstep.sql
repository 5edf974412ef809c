-- for: admin
create or replace function jobs.sp_add_jobstep(
    job_name text,
    step_id integer default null,
    step_name text default null,
    command_type text default 'TSql',
    command_source text default 'Inline',
    command text default null,
    credential_name text default null,
    target_group_name text default null,
    initial_retry_interval_seconds integer default 1,
    maximum_retry_interval_seconds integer default 120,
    retry_interval_backoff_multiplier real default 2.0,
    retry_attempts integer default 10,
    step_timeout_seconds integer default 43200,
    output_type text default null,
    output_credential_name text default null,
    output_subscription_id text default null,
    output_resource_group_name text default null,
    output_server_name text default null,
    output_database_name text default null,
    output_schema_name text default null,
    output_table_name text default null,
    out job_version integer,
    max_parallelism integer default null,
    options jsonb default '{}'
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant job := lock_job(job_name);
    new job_step;
begin
    perform check_command_kind(command_type, command_source);
    new.step_id := step_id;
    new.name := coalesce(step_name, case when not exists (
        select from job_step s where (s.job_id, s.version) = (edited.job_id, edited.version)) then 'JobStep' end);
    new.credential_name := nullif(credential_name, '');
    new.target_group_name := target_group_name;
    new.initial_retry_interval_seconds := initial_retry_interval_seconds;
    new.maximum_retry_interval_seconds := maximum_retry_interval_seconds;
    new.retry_interval_backoff_multiplier := retry_interval_backoff_multiplier;
    new.retry_attempts := retry_attempts;
    new.timeout_seconds := step_timeout_seconds;
    new.output_type := nullif(output_type, '');
    new.output_credential_name := nullif(output_credential_name, '');
    new.output_subscription_id := nullif(output_subscription_id, '');
    new.output_resource_group_name := nullif(output_resource_group_name, '');
    new.output_server_name := nullif(output_server_name, '');
    new.output_database_name := nullif(output_database_name, '');
    new.output_schema_name := nullif(output_schema_name, '');
    new.output_table_name := nullif(output_table_name, '');
    new.max_parallelism := nullif(max_parallelism, -1);
    new.options := coalesce(options, '{}');
    job_version := save_step('sp_add_jobstep', edited, null, new, command);
end $$;
comment on function jobs.sp_add_jobstep(text, integer, text, text, text, text, text, text, integer, integer, real,
                                        integer, integer, text, text, text, text, text, text, text, text, integer,
                                        jsonb) is
    'Creates a version of the job with one more step: last, or at step_id, which moves the following steps.';
