-- for: owner
create or replace function jobs_internal.check_step(p_step jobs_internal.job_step) returns void
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong record;
begin
    select r.field, r.meaning into wrong
      from (values
        (p_step.initial_retry_interval_seconds between 1 and 2147483,
         'initial_retry_interval_seconds', 'is a number from 1 to 2147483'),
        (p_step.maximum_retry_interval_seconds between p_step.initial_retry_interval_seconds and 2147483,
         'maximum_retry_interval_seconds', 'is a number from initial_retry_interval_seconds to 2147483'),
        (p_step.retry_interval_backoff_multiplier between 1 and 1000,
         'retry_interval_backoff_multiplier', 'is a number from 1 to 1000'),
        (p_step.retry_attempts between 0 and 2147483, 'retry_attempts', 'is a number from 0 to 2147483'),
        (p_step.timeout_seconds between 1 and 2147483, 'step_timeout_seconds', 'is a number from 1 to 2147483'),
        (coalesce(p_step.max_parallelism, 1) >= 1, 'max_parallelism', 'is 1 or more, or -1 for no limit'),
        (coalesce(p_step.output_type, 'SqlDatabase') = 'SqlDatabase', 'output_type', 'is SqlDatabase or nothing'),
        (p_step.output_type is not null or num_nonnulls(p_step.output_server_name, p_step.output_database_name,
             p_step.output_schema_name, p_step.output_table_name, p_step.output_credential_name,
             p_step.output_subscription_id, p_step.output_resource_group_name) = 0,
         'output_type', 'is SqlDatabase where an output is described'),
        (p_step.output_type is null or p_step.output_server_name is not null,
         'output_server_name', 'is needed for an output'),
        (p_step.output_type is null or octet_length(p_step.output_database_name) between 1 and 63,
         'output_database_name', 'is needed for an output and has at most 63 bytes'),
        (octet_length(coalesce(p_step.output_schema_name, 'dbo')) <= 63, 'output_schema_name', 'has at most 63 bytes'),
        (p_step.output_type is null or octet_length(p_step.output_table_name) between 1 and 63,
         'output_table_name', 'is needed for an output and has at most 63 bytes'),
        (coalesce(p_step.output_schema_name, '') !~ '^(pg_|information_schema$)',
         'output_schema_name', 'is not a schema of PostgreSQL''s own'),
        (p_step.output_type is not null or not coalesce(p_step.options, '{}') ? 'output'
             or p_step.options -> 'output' = 'null',
         'options', 'has output only where there is an output')
      ) r (holds, field, meaning)
     where r.holds is not true
     limit 1;
    if found then
        perform raise_error('MU012', wrong.field, wrong.field || ' ' || wrong.meaning);
    end if;
end $$;
comment on function jobs_internal.check_step(jobs_internal.job_step) is
    'Raises unless numbers and output of a step are valid.';
