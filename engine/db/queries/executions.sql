-- name: live_targets
-- The unfinished targets of a step, in their order.
select ordinal, lifecycle, attempts, not_before, deadline, server_id, pool_name, database_name, schema_name,
       worker_pool, attempt, host_id, invocation_id, task_lifecycle, unlisted
  from jobs_internal.live_targets($1, $2, $3, $4);

-- name: begin_run
-- Begun, Skipped, Queued, Canceled, Paused or Over.
select jobs_internal.begin_run($1, $2);

-- name: reserve
-- Reserves tasks for hosts, and sends them running tasks to cancel.
select jobs_internal.reserve_and_cancel($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: reserve_and_read
-- Reserves tasks for hosts; the completions after the numbers that the core has read.
select host_id, number, pg_catalog.to_json(items)::text as items
  from jobs_internal.reserve_and_poll($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: take
-- The tasks that a host must run or cancel, after the dispatch that it has read last.
select t.*, false as begun from jobs_internal.fetch_dispatches($1, $2, true) t;

-- name: take_and_start
-- The same; a single task that is as expected starts, in that session.
with task as materialized (
    select t.* from jobs_internal.fetch_dispatches($1, $2, false) t
), start as materialized (
    select jobs_internal.report(
               $1, $3, jsonb_build_array(to_jsonb(
                   (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt, t.invocation_id, $12::integer,
                    $13::integer)::jobs_internal.task_start)), null, null, null, null) = '{}' as accepted
      from task t
     where (select pg_catalog.count(*) from task) = 1 and t.kind = 'task' and not t.started
       -- The host expects the step without values of a run.
       and not t.overrides ?| '{timeoutSeconds,lockTimeoutSeconds}'
       and (t.job_id, t.job_version, t.step_id, t.server_id, t.directory, t.database_name, t.credential_id,
            t.credential_version) = ($4::uuid, $5::integer, $6::integer, $7::text, $8::bigint, $9::text, $10::uuid,
                                     $11::bigint)
)
select t.*, coalesce((select s.accepted from start s), false) as begun from task t;

-- name: step_document
-- All that running a step needs except its target.
select jobs_internal.step_document($1, $2, $3)::text;

-- name: output_place
-- The server and the credential that the output of a target is written with.
select jobs_internal.output_place($1, $2, $3, $4)::text;

-- name: needed_rows
-- For each of these targets whether its rows may still be written to the output.
select jobs_internal.needed_rows($1, $2, $3, $4);

-- name: servers
-- Servers with these ids, or all.
select jobs_internal.read_servers($1)::text;

-- name: secrets
-- Credentials with these ids, sealed or as references.
select credential_id, row_version, name, username, secret, servers from jobs_internal.read_credentials($1);

-- name: report
-- The refused invocations.
select jobs_internal.report($1, $2, $3::text::jsonb, $4::text::jsonb, $5::text::jsonb, $6::text::jsonb,
                               $7::text::jsonb);

-- name: read_completions
-- The completions after the numbers that the core has read.
select host_id, number, pg_catalog.to_json(items)::text as items
  from jobs_internal.read_completions($1, $2, $3);

-- name: completion_marks
-- The newest completion of each host.
select host_id, number from jobs_internal.completion_marks($1);

-- name: live_invocations
-- The invocations of all tasks that are reserved or run.
select live_invocations as invocation_id from jobs_internal.live_invocations($1);

-- name: settle
-- Records the outcomes of attempts whose host was lost; returns them as a completion has them.
select pg_catalog.to_json(jobs_internal.resolve_orphaned_attempts($1, $2::text::jsonb))::text;

-- name: disown
-- Revokes the tasks of a lost host: reservations are deleted, attempts get new invocations.
select run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, old_invocation, task_lifecycle, backend_pid,
       xact_id, server_id, database_name, credential_id, credential_version, start_time, idempotent, guard, transaction,
       verify, output
  from jobs_internal.revoke_host_tasks($1, $2);

-- name: running_attempt
-- The session in which a target's attempt runs, and the credential that may read its state.
select invocation_id, backend_pid, server_id, database_name, credential_id
  from jobs_internal.running_attempt($1, $2, $3, $4);

-- name: end_step
-- The lifecycle of the ended step; null while a target is unfinished.
select jobs_internal.end_step($1, $2, $3, $4, $5);

-- name: end_last_step
-- The lifecycles of the ended step and run; null while a target is unfinished.
select step, run from jobs_internal.end_last_step($1, $2, $3);

-- name: end_run
-- The lifecycle of the ended run; null while a step is unfinished.
select jobs_internal.end_run($1, $2);

-- name: cancel_targets
-- Targets that ended at once, and attempts that their hosts must cancel.
select ordinal, host_id, invocation_id, ended from jobs_internal.cancel_targets($1, $2, $3, $4);

-- name: time_out
-- The waiting targets that have timed out.
select time_out_targets as ordinal from jobs_internal.time_out_targets($1, $2, $3, $4);

-- name: close_cancellation
-- The cancellation is complete, by this method.
select jobs_internal.close_cancellation($1, $2, $3);
