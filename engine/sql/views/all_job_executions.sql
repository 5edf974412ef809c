-- for: owner
create or replace view jobs_internal.all_job_executions as
select x.job_execution_id,
       j.name as job_name,
       x.job_id,
       x.job_version,
       null::integer as step_id,
       x.end_time is null as is_active,
       x.lifecycle,
       x.create_time,
       x.start_time,
       x.end_time,
       x.attempt as current_attempts,
       null::timestamptz as current_attempt_start_time,
       x.not_before as next_attempt_start_time,
       x.last_message,
       null::text as target_type,
       null::uuid as target_id,
       null::text as target_group_name,
       null::text as target_server_name,
       null::text as target_database_name,
       null::text as target_schema_name,
       null::text as step_name,
       null::uuid as target_execution_id,
       null::text as phase,
       null::integer as wave,
       x.wait_reason,
       x.end_reason,
       x.cancel_requested_at,
       x.origin,
       x.slot,
       x.actor,
       x.door,
       j.deleted_at
  from jobs_internal.job_execution x
  join jobs_internal.job j on j.job_id = x.job_id
union all
select x.job_execution_id, j.name, x.job_id, x.job_version, s.step_id, s.end_time is null, s.lifecycle,
       s.create_time, s.start_time, s.end_time, 0, null, null, s.last_message, null, null, null, null, null, null,
       s.step_name, null, null, s.wave, s.wait_reason, s.end_reason, s.cancel_requested_at, x.origin, x.slot,
       x.actor, x.door, j.deleted_at
  from jobs_internal.job_execution x
  join jobs_internal.job j on j.job_id = x.job_id
  join jobs_internal.step_execution s on (s.run_day, s.job_execution_id) = (x.run_day, x.job_execution_id)
union all
select x.job_execution_id, j.name, x.job_id, x.job_version, s.step_id, t.end_time is null, t.lifecycle,
       t.create_time, t.start_time, t.end_time, t.attempts, t.attempt_start_time, t.not_before, t.last_message,
       d.target_type, d.target_id, g.target_group_name, d.server_name, d.database_name, d.schema_name,
       s.step_name, t.target_execution_id, t.phase, t.wave, t.wait_reason, t.end_reason, t.cancel_requested_at,
       x.origin, x.slot, x.actor, x.door, j.deleted_at
  from jobs_internal.job_execution x
  join jobs_internal.job j on j.job_id = x.job_id
  join jobs_internal.step_execution s on (s.run_day, s.job_execution_id) = (x.run_day, x.job_execution_id)
  join jobs_internal.target_execution t
    on (t.run_day, t.job_execution_id, t.step_id) = (s.run_day, s.job_execution_id, s.step_id)
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
  left join jobs_internal.job_step g on (g.job_id, g.version, g.step_id) = (x.job_id, x.job_version, s.step_id);
comment on view jobs_internal.all_job_executions is
    'Runs, their steps and the targets of those, of existing and of deleted jobs.';
comment on column jobs_internal.all_job_executions.job_execution_id is 'The run, the same for all that belongs to it.';
comment on column jobs_internal.all_job_executions.job_name is 'The job.';
comment on column jobs_internal.all_job_executions.job_id is 'The job''s own id.';
comment on column jobs_internal.all_job_executions.job_version is 'The version that runs.';
comment on column jobs_internal.all_job_executions.step_id is 'The step; null on the run itself.';
comment on column jobs_internal.all_job_executions.is_active is 'True until it has finished.';
comment on column jobs_internal.all_job_executions.lifecycle is 'Created, InProgress, WaitingFor…, or how it ended.';
comment on column jobs_internal.all_job_executions.create_time is 'When it was created.';
comment on column jobs_internal.all_job_executions.start_time is 'When it began.';
comment on column jobs_internal.all_job_executions.end_time is 'When it finished.';
comment on column jobs_internal.all_job_executions.current_attempts is 'Attempts that started; 0 on steps, and on runs that have none.';
comment on column jobs_internal.all_job_executions.current_attempt_start_time is 'When the newest attempt started.';
comment on column jobs_internal.all_job_executions.next_attempt_start_time is 'When the next attempt may start.';
comment on column jobs_internal.all_job_executions.last_message is 'A message for users.';
comment on column jobs_internal.all_job_executions.target_type is 'Of the target; null on runs and steps.';
comment on column jobs_internal.all_job_executions.target_id is 'Of the target, the same in every run.';
comment on column jobs_internal.all_job_executions.target_group_name is 'The group that the target came from.';
comment on column jobs_internal.all_job_executions.target_server_name is 'The target''s server.';
comment on column jobs_internal.all_job_executions.target_database_name is 'The target''s database.';
comment on column jobs_internal.all_job_executions.target_schema_name is 'The schema, where the target is one.';
comment on column jobs_internal.all_job_executions.step_name is 'The step; null on the run itself.';
comment on column jobs_internal.all_job_executions.target_execution_id is 'internal_execution_id in output tables.';
comment on column jobs_internal.all_job_executions.phase is 'Of a target: connect, run, commit, verify or output.';
comment on column jobs_internal.all_job_executions.wave is 'Of the rollout.';
comment on column jobs_internal.all_job_executions.wait_reason is 'Why it waits.';
comment on column jobs_internal.all_job_executions.end_reason is 'Why it ended as it did.';
comment on column jobs_internal.all_job_executions.cancel_requested_at is 'When its cancellation was first requested.';
comment on column jobs_internal.all_job_executions.origin is 'Of the run: slot, caller, rerun, plan or system.';
comment on column jobs_internal.all_job_executions.slot is 'The instant of the schedule that the run belongs to.';
comment on column jobs_internal.all_job_executions.actor is 'The user who started the run.';
comment on column jobs_internal.all_job_executions.door is 'By which way: rest, fsm, psql or engine.';
comment on column jobs_internal.all_job_executions.deleted_at is 'When the job was deleted.';
