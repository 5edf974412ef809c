-- for: reader, operator, admin
create or replace view jobs.jobs as
select j.name as job_name, j.job_id, j.version as job_version, j.description, j.enabled, j.schedule_interval_type,
       j.schedule_interval_count, j.schedule_start_time, j.schedule_end_time, j.schedule_cron, j.schedule_time_zone,
       nullif(j.next_slot, 'infinity') as next_slot, j.misfire_policy, j.misfire_within_seconds, j.overlap, j.paused, j.priority, j.owner, j.labels,
       j.retention_days, j.system, j.row_version, j.created_by, j.created_at, j.modified_by, j.modified_at,
       j.run_attempts, j.auto_disable,
       coalesce((select h.failures from jobs_internal.job_health h where h.job_id = j.job_id), 0) as failures_in_a_row,
       (select h.disabled_at from jobs_internal.job_health h where h.job_id = j.job_id) as auto_disabled_at
  from jobs_internal.job j
 where j.deleted_at is null and not j.system;
comment on view jobs.jobs is 'The jobs that are not deleted.';
comment on column jobs.jobs.job_name is 'Unique without regard to case.';
comment on column jobs.jobs.job_id is 'Stays when the job is renamed.';
comment on column jobs.jobs.job_version is 'The current one; 0 until there is a step.';
comment on column jobs.jobs.description is 'A description for users.';
comment on column jobs.jobs.enabled is 'Whether the schedule takes effect; jobs.sp_start_job always works.';
comment on column jobs.jobs.schedule_interval_type is 'Once, Minutes, Hours, Days, Weeks or Months.';
comment on column jobs.jobs.schedule_interval_count is 'How many of them lie between two runs.';
comment on column jobs.jobs.schedule_start_time is 'No run before.';
comment on column jobs.jobs.schedule_end_time is 'No run from here on.';
comment on column jobs.jobs.schedule_cron is 'Five fields in the place of an interval.';
comment on column jobs.jobs.schedule_time_zone is 'IANA name for cron; null = UTC.';
comment on column jobs.jobs.next_slot is 'The next slot; null = none, or not yet computed.';
comment on column jobs.jobs.misfire_policy is 'What happens to a missed slot: runOnce or skip.';
comment on column jobs.jobs.misfire_within_seconds is 'How late a slot may still run; null = the default.';
comment on column jobs.jobs.overlap is
    'What happens while an earlier run is unfinished: skipTarget, skipExecution, queueOne, allow or cancelPrevious.';
comment on column jobs.jobs.paused is 'Nothing of it starts; the schedule stays as it is.';
comment on column jobs.jobs.priority is 'Always 0: no other value is supported by this version.';
comment on column jobs.jobs.owner is 'The person or team responsible.';
comment on column jobs.jobs.labels is 'For selection.';
comment on column jobs.jobs.retention_days is 'How long its history is kept; null = the account''s default.';
comment on column jobs.jobs.system is 'Always false: system jobs are in jobs.system_jobs.';
comment on column jobs.jobs.row_version is 'The ETag; changes with the steps too.';
comment on column jobs.jobs.created_by is 'The user who created it.';
comment on column jobs.jobs.created_at is 'When it was created.';
comment on column jobs.jobs.modified_by is 'The user who changed it last.';
comment on column jobs.jobs.modified_at is 'When it was changed last.';
comment on column jobs.jobs.run_attempts is
    'Whether its runs have attempts, and their limits and pauses; null = as the account says.';
comment on column jobs.jobs.auto_disable is
    'When the schedule is disabled after failures; null = as the account says.';
comment on column jobs.jobs.failures_in_a_row is 'Runs that have failed since the last success.';
comment on column jobs.jobs.auto_disabled_at is 'When the schedule was disabled because of them.';
