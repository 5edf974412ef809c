-- for: reader, operator, admin
create or replace view jobs.run_attempts as
select a.job_execution_id, j.name as job_name, x.job_id, a.number as attempt, a.lifecycle, a.start_time, a.end_time,
       a.newly_succeeded, a.remaining, a.next_start_time as next_attempt_start_time, a.reached_limit, a.message
  from jobs_internal.run_attempt a
  join jobs_internal.job_execution x on x.job_execution_id = a.job_execution_id
  join jobs_internal.job j on j.job_id = x.job_id
 where j.deleted_at is null;
comment on view jobs.run_attempts is 'The attempts of runs: passes over the targets that had not succeeded.';
comment on column jobs.run_attempts.job_execution_id is 'The run.';
comment on column jobs.run_attempts.job_name is 'The job.';
comment on column jobs.run_attempts.job_id is 'The job''s own id.';
comment on column jobs.run_attempts.attempt is 'From 1.';
comment on column jobs.run_attempts.lifecycle is 'InProgress, Succeeded or Failed.';
comment on column jobs.run_attempts.start_time is 'When it began.';
comment on column jobs.run_attempts.end_time is 'When it ended.';
comment on column jobs.run_attempts.newly_succeeded is 'How many targets succeeded in it.';
comment on column jobs.run_attempts.remaining is 'How many targets another attempt would take.';
comment on column jobs.run_attempts.next_attempt_start_time is 'When the next attempt may begin; null = none follows.';
comment on column jobs.run_attempts.reached_limit is 'The limit because of which no further attempt follows.';
comment on column jobs.run_attempts.message is 'A message for users.';
