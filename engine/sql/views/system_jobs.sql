-- for: reader, operator, admin
create or replace view jobs.system_jobs as
select j.name as job_name, j.job_id, j.description, j.enabled, j.schedule_interval_type, j.schedule_interval_count,
       j.next_slot as next_run_time, j.retention_days, r.create_time as last_run_time,
       r.job_execution_id as last_job_execution_id, r.lifecycle as last_lifecycle, r.last_message,
       j.modified_by, j.modified_at
  from jobs_internal.job j
  left join lateral (
       select x.create_time, x.job_execution_id, x.lifecycle, x.last_message
         from jobs_internal.job_execution x
        where x.job_id = j.job_id
        order by x.create_time desc, x.job_execution_id desc
        limit 1) r on true
 where j.system and j.deleted_at is null;
comment on view jobs.system_jobs is
    'The system jobs. A system job that was changed is repaired, and the audit has an entry about it.';
comment on column jobs.system_jobs.job_name is 'Reserved: no other job can have it.';
comment on column jobs.system_jobs.job_id is 'The same in every account.';
comment on column jobs.system_jobs.description is 'What it does.';
comment on column jobs.system_jobs.enabled is 'Whether it runs at an interval.';
comment on column jobs.system_jobs.schedule_interval_type is 'Once, Minutes, Hours or Days.';
comment on column jobs.system_jobs.schedule_interval_count is 'How many of them lie between two runs.';
comment on column jobs.system_jobs.next_run_time is 'When it is due next; null = now, or on request.';
comment on column jobs.system_jobs.retention_days is 'How long its history is kept; null = the account''s default.';
comment on column jobs.system_jobs.last_run_time is 'The time of its last run that is recorded.';
comment on column jobs.system_jobs.last_job_execution_id is 'That run.';
comment on column jobs.system_jobs.last_lifecycle is 'How that run ended.';
comment on column jobs.system_jobs.last_message is 'What that run did.';
comment on column jobs.system_jobs.modified_by is 'The user who changed it last; muster after it was created or repaired.';
comment on column jobs.system_jobs.modified_at is 'When it was changed last.';
