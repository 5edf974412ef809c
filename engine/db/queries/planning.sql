-- name: look
-- The database's clock in seconds, the limits of the servers, and the paused jobs.
select extract(epoch from pg_catalog.clock_timestamp())::double precision as now,
       (select coalesce(pg_catalog.json_agg(l), '[]')::text from jobs_internal.read_limits($1) l) as limits,
       array(select p from jobs_internal.paused_jobs($1) p) as paused,
       jobs_internal.same_error_limit($1) as same_error_limit;

-- name: news
-- Unfinished runs that the core does not have, the oldest first, open cancellations, rollouts that an operator resumed
-- or aborted, how often targets were retried, and the group that new runs begin with.
select runs::text, orders::text, rollouts::text, retries::text, group_name, document::text from jobs_internal.poll_updates($1, $2);

-- name: plenty_of_time
-- A longer timeout, for the plan of a large fleet.
select pg_catalog.set_config('statement_timeout', '15min', true);

-- name: watch_client
-- The server notices when the client has disconnected; fails where the server can't.
select pg_catalog.set_config('client_connection_check_interval', '1000', true);

-- name: reach_step
-- Enters the first step of a run: Begun, Skipped, Queued, Canceled, Paused or Over.
select jobs_internal.enter_step($1, $2, $3);

-- name: plan_step
-- The same with the step's targets as columns; the ordinals that are skipped, null when they were planned before.
select begun, skipped
  from jobs_internal.plan_step($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14,
                                  $15::text[]::jsonb[], $16, $17, $18);

-- name: plan_and_reserve
-- The same; also reserves tasks of its targets if the run has begun and no target is skipped.
with planned as materialized (
    select begun, skipped
      from jobs_internal.plan_step($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14,
                                      $15::text[]::jsonb[], $16, $17, $18)
)
select begun, skipped,
       case when begun = 'Begun' and skipped = '{}'
            then jobs_internal.reserve_and_cancel($1, $19, $20, $21, $22, $23, $24, $25, '{}', '{}') end as reserved
  from planned;

-- name: cancel_everything
-- Requests the cancellation of every run: the account is being deleted.
select jobs_internal.cancel_everything($1);

-- name: rollout_progress
-- How far a step is: its open wave, whether it is halted, and the ends of targets since the last resume.
select targets, wave, approved_wave, halted, aborted, resumed_at, failures, ended_at, lifecycles, sqlstates
  from jobs_internal.rollout_progress($1, $2, $3, $4);

-- name: halt_step
-- Nothing further of the step starts; the reservations that were taken back.
select halt_step as invocation_id from jobs_internal.halt_step($1, $2, $3, $4, $5);

-- name: open_wave
-- The targets of this wave may start.
select jobs_internal.open_wave($1, $2, $3, $4);

-- name: wait_for_wave
-- Why the next wave does not start yet, and until when.
select jobs_internal.wait_for_wave($1, $2, $3, $4, $5, $6);

-- name: abort_step
-- The waiting targets that ended.
select abort_step as ordinal from jobs_internal.abort_step($1, $2, $3);

-- name: previous_targets
-- What the unfinished targets of a step wait for in the step before it.
select ordinal, previous_ordinal, previous_lifecycle from jobs_internal.previous_targets($1, $2, $3, $4);

-- name: skip_targets
-- Ends targets that did not succeed in the step before.
select jobs_internal.skip_targets($1, $2, $3, $4);

-- name: chosen_targets
-- The chosen targets of a run that take part in this step or in one before it.
select in_step, target_type, server_id, server_name, database_name, schema_name, labels::text, credential_id, rule
  from jobs_internal.chosen_targets($1, $2, $3);

-- name: earlier_targets
-- The targets of the steps of a run before this one.
select server_id, database_name, schema_name from jobs_internal.earlier_targets($1, $2, $3);

-- name: is_step_of_origin
-- Whether the origin of the rerun had targets in this step.
select jobs_internal.is_step_of_origin($1, $2, $3);

-- name: origin_named_targets
-- Whether the targets of a rerun were once named by a caller.
select jobs_internal.origin_named_targets($1, $2);

-- name: plan_input
-- The steps of a job with their scripts and earlier durations.
select jobs_internal.plan_input($1, $2)::text;

-- name: store_snapshot
-- Stores targets, as columns; their number.
select jobs_internal.store_snapshot($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9, $10, $11, $12,
                                    $13::text[]::jsonb[], $14, $15);

-- name: store_plan
-- Stores a plan with the snapshots of its steps.
select jobs_internal.store_plan($1, $2, $3, $4, $5::text::jsonb, $6, $7);

-- name: unlisted_document
-- The target group as it was when the step began, for servers that are listed again; null: they can't be.
select jobs_internal.unlisted_document($1, $2, $3)::text;

-- name: join_targets
-- The target that was replaced, then those that take its place; nothing: it has ended, or runs.
select ordinal, server_id, pool_name, database_name, unlisted, skipped
  from jobs_internal.join_targets($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[]::jsonb[], $12, $13, $14);

-- name: attempt_outcome
-- What the running attempt of a run came to, and the targets that newly succeeded in each attempt before it.
select earlier, newly_succeeded, remaining from jobs_internal.attempt_outcome($1, $2);

-- name: wait_for_attempt
-- The run waits for its next attempt: waits, stopped or unfinished.
select jobs_internal.wait_for_attempt($1, $2, $3, $4, $5, $6);

-- name: end_attempts
-- Why no further attempt follows.
select jobs_internal.end_attempts($1, $2, $3, $4, $5, $6);

-- name: begin_attempt
-- The next attempt of a run begins; false: the run does not wait any more.
select jobs_internal.begin_attempt($1, $2);
