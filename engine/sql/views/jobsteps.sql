-- for: reader, operator, admin
create or replace view jobs.jobsteps as
select j.name as job_name, j.job_id, s.version as job_version, s.step_id, s.name as step_name,
       'TSql'::text as command_type, 'Inline'::text as command_source, c.body as command, s.credential_name,
       s.target_group_name, s.target_group_id,
       s.initial_retry_interval_seconds, s.maximum_retry_interval_seconds, s.retry_interval_backoff_multiplier,
       s.retry_attempts, s.timeout_seconds as step_timeout_seconds, s.output_type, s.output_credential_name,
       s.output_subscription_id, s.output_resource_group_name, s.output_server_name, s.output_database_name,
       s.output_schema_name, s.output_table_name, s.max_parallelism, s.options, s.row_version, s.created_by,
       s.created_at, s.modified_by, s.modified_at
  from jobs_internal.job j
  join jobs_internal.job_step s on s.job_id = j.job_id and s.version = j.version
  join jobs_internal.script c on c.script_hash = s.script_hash
 where j.deleted_at is null and not j.system;
comment on view jobs.jobsteps is 'The steps of the current version of each job.';
comment on column jobs.jobsteps.job_name is 'The job.';
comment on column jobs.jobsteps.job_id is 'The job.';
comment on column jobs.jobsteps.job_version is 'The version that the step belongs to.';
comment on column jobs.jobsteps.step_id is '1 … n without a gap: the order of the steps.';
comment on column jobs.jobsteps.step_name is 'Unique in its version without regard to case.';
comment on column jobs.jobsteps.command_type is 'Always TSql, which stands for SQL.';
comment on column jobs.jobsteps.command_source is 'Always Inline.';
comment on column jobs.jobsteps.command is 'The script.';
comment on column jobs.jobsteps.credential_name is 'The credential that runs it; null = the target''s credential.';
comment on column jobs.jobsteps.target_group_name is 'Where it runs.';
comment on column jobs.jobsteps.target_group_id is 'Where it runs.';
comment on column jobs.jobsteps.initial_retry_interval_seconds is 'Pause after the first failed attempt.';
comment on column jobs.jobsteps.maximum_retry_interval_seconds is 'No pause is longer.';
comment on column jobs.jobsteps.retry_interval_backoff_multiplier is 'By which the pause grows.';
comment on column jobs.jobsteps.retry_attempts is 'Attempts beyond the first.';
comment on column jobs.jobsteps.step_timeout_seconds is 'For one target with all attempts and pauses.';
comment on column jobs.jobsteps.output_type is 'SqlDatabase, or null = the rows are kept with the attempt only.';
comment on column jobs.jobsteps.output_credential_name is 'The credential that writes the output.';
comment on column jobs.jobsteps.output_subscription_id is 'Of the output''s server.';
comment on column jobs.jobsteps.output_resource_group_name is 'Of the output''s server.';
comment on column jobs.jobsteps.output_server_name is 'Where the output goes.';
comment on column jobs.jobsteps.output_database_name is 'Where the output goes.';
comment on column jobs.jobsteps.output_schema_name is 'Where the output goes; dbo means public where there is no dbo.';
comment on column jobs.jobsteps.output_table_name is 'Created from the first result set if it does not exist.';
comment on column jobs.jobsteps.max_parallelism is
    'Databases at once per pool, or per server outside of pools; null = no limit.';
comment on column jobs.jobsteps.options is 'Everything beyond Elastic Jobs: transaction, settings, rollout, verify, …';
comment on column jobs.jobsteps.row_version is 'The ETag; the same in later versions while the step stays the same.';
comment on column jobs.jobsteps.created_by is 'The user who created it.';
comment on column jobs.jobsteps.created_at is 'When it was created.';
comment on column jobs.jobsteps.modified_by is 'The user who changed it last.';
comment on column jobs.jobsteps.modified_at is 'When it was changed last.';
