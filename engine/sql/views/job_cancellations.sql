-- for: reader, operator, admin
create or replace view jobs.job_cancellations as
select c.cancellation_id,
       c.job_execution_id,
       j.name as job_name,
       j.job_id,
       c.step_id,
       d.target_id,
       c.requested_by,
       c.door,
       c.reason,
       c.requested_at,
       c.completed_at,
       c.cancel_method as needed
  from jobs_internal.cancellation c
  join jobs_internal.job_execution x on x.job_execution_id = c.job_execution_id
  join jobs_internal.job j on j.job_id = x.job_id
  left join jobs_internal.step_execution s
    on (s.run_day, s.job_execution_id, s.step_id) = (x.run_day, x.job_execution_id, c.step_id)
  left join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (s.snapshot_id, c.ordinal)
 where j.deleted_at is null;
comment on view jobs.job_cancellations is 'Requests to cancel runs, steps or targets: by whom, when, why, by which door, and the method that was needed.';
comment on column jobs.job_cancellations.cancellation_id is 'Its id.';
comment on column jobs.job_cancellations.job_execution_id is 'The run.';
comment on column jobs.job_cancellations.job_name is 'The job.';
comment on column jobs.job_cancellations.job_id is 'The job''s own id.';
comment on column jobs.job_cancellations.step_id is 'One step of the run; null = all.';
comment on column jobs.job_cancellations.target_id is 'One target of the step; null = all.';
comment on column jobs.job_cancellations.requested_by is 'The user who requested it.';
comment on column jobs.job_cancellations.door is 'By which way: rest, fsm, psql or engine.';
comment on column jobs.job_cancellations.reason is 'The reason that the user gave.';
comment on column jobs.job_cancellations.requested_at is 'When it was requested.';
comment on column jobs.job_cancellations.completed_at is 'When the last attempt had ended.';
comment on column jobs.job_cancellations.needed is
    'The strongest method that was needed: nothing, protocol, pg_cancel_backend or pg_terminate_backend.';
