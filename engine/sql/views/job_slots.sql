-- for: reader, operator, admin
create or replace view jobs.job_slots as
select j.name as job_name, j.job_id, s.slot, s.outcome, s.reason, s.job_execution_id, s.decided_at
  from jobs_internal.slot s
  join jobs_internal.job j on j.job_id = s.job_id
 where j.deleted_at is null and not j.system;
comment on view jobs.job_slots is 'The decision about each slot of a schedule.';
comment on column jobs.job_slots.job_name is 'The job.';
comment on column jobs.job_slots.job_id is 'The job.';
comment on column jobs.job_slots.slot is 'When it was to run.';
comment on column jobs.job_slots.outcome is 'fired, coalesced, missed or skipped.';
comment on column jobs.job_slots.reason is
    'Why it did not fire: Late, LateUntilNextRow (so were all up to the next row), Newer (a later one fired in its '
    'place), AccountPaused, JobPaused or NoSteps. A Once waits for these to pass and is missed when it is too late.';
comment on column jobs.job_slots.job_execution_id is 'The run, where it fired.';
comment on column jobs.job_slots.decided_at is 'When it was decided.';
