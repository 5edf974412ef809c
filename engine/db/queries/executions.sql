-- name: live_targets
-- The targets of a step that are not over, in their order.
select ordinal, lifecycle, attempts, not_before, deadline, server_id, pool_name, database_name, schema_name,
       worker_pool, attempt, host_id, invocation_id, task_lifecycle
  from jobs_internal.live_targets($1, $2, $3, $4);

-- name: begin_run
-- Begun, Skipped, Queued, Canceled or Over.
select jobs_internal.begin_run($1, $2);

-- name: reserve
-- Tasks for hosts, and running ones that they must stop.
select jobs_internal.reserve_and_cancel($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: reserve_and_read
-- Tasks for hosts; what became of others, behind the numbers that are known.
select host_id, number, report::text from jobs_internal.reserve_and_poll($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: take
-- What a host must run and stop, behind the dispatch that it knows.
select kind, slot, started, false as begun, number, run_day, job_execution_id, step_id, ordinal, attempt,
       invocation_id, target_execution_id, job_id, job_version, run_create_time, target_type, target_id, server_id,
       server_name, pool_name, database_name, schema_name, credential_id, credential_version, first_start, tried_at,
       directory, script_outcome, overrides::text, labels::text
  from jobs_internal.fetch_dispatches($1, $2, true);

-- name: take_and_start
-- The same; a single task that is as expected begins, in that session.
with taken as materialized (
    select * from jobs_internal.fetch_dispatches($1, $2, false)
), begun as materialized (
    select jobs_internal.report(
               $1, $3, jsonb_build_array(jsonb_build_object(
                   'd', t.run_day, 'r', t.job_execution_id, 's', t.step_id, 'o', t.ordinal, 'a', t.attempt,
                   'i', t.invocation_id, 'p', $12::integer, 'v', $13::integer)), null, null, null, null) = '{}' as yes
      from taken t
     where (select pg_catalog.count(*) from taken) = 1 and t.kind = 'task' and not t.started
       and (t.job_id, t.job_version, t.step_id, t.server_id, t.directory, t.database_name, t.credential_id,
            t.credential_version) = ($4::uuid, $5::integer, $6::integer, $7::text, $8::bigint, $9::text, $10::uuid,
                                     $11::bigint)
)
select kind, slot, started, coalesce((select b.yes from begun b), false) as begun, number, run_day, job_execution_id,
       step_id, ordinal, attempt,
       invocation_id, target_execution_id, job_id, job_version, run_create_time, target_type, target_id, server_id,
       server_name, pool_name, database_name, schema_name, credential_id, credential_version, first_start, tried_at,
       directory, script_outcome, overrides::text, labels::text
  from taken;

-- name: step_document
-- All that running a step needs beside its target.
select jobs_internal.step_document($1, $2, $3)::text;

-- name: servers
-- Servers with these ids, or all.
select jobs_internal.read_servers($1)::text;

-- name: secrets
-- Credentials with these ids, sealed or as references.
select credential_id, row_version, name, username, secret, servers from jobs_internal.read_credentials($1);

-- name: report
-- The invocations that were refused.
select jobs_internal.report($1, $2, $3::text::jsonb, $4::text::jsonb, $5::text::jsonb, $6::text::jsonb,
                               $7::text::jsonb);

-- name: read_completions
-- What became of tasks, behind the numbers that are known.
select host_id, number, report::text from jobs_internal.read_completions($1, $2, $3);

-- name: completion_marks
-- The newest completion of each host.
select host_id, number from jobs_internal.completion_marks($1);

-- name: live_invocations
-- Of every task that is reserved or runs.
select live_invocations as invocation_id from jobs_internal.live_invocations($1);

-- name: settle
-- What became of tasks whose host was lost, as completions tell it.
select jobs_internal.resolve_orphaned_attempts($1, $2::text::jsonb)::text;

-- name: disown
-- Tasks of a lost host: reservations are gone, the others go by a new invocation.
select run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, old_invocation, task_lifecycle, backend_pid,
       xact_id, server_id, database_name, credential_id, credential_version, start_time, idempotent, guard, transaction, verify
  from jobs_internal.revoke_host_tasks($1, $2);

-- name: running_attempt
-- The session in which a target's attempt runs, and who may look at it.
select invocation_id, backend_pid, server_id, database_name, credential_id
  from jobs_internal.running_attempt($1, $2, $3, $4);

-- name: end_step
-- How the step ended; null while a target lives.
select jobs_internal.end_step($1, $2, $3, $4, $5);

-- name: end_last_step
-- How the step and its run ended; null while a target lives.
select step, run from jobs_internal.end_last_step($1, $2, $3);

-- name: end_run
-- How the run ended; null while a step lives.
select jobs_internal.end_run($1, $2);

-- name: cancel_targets
-- Targets that ended at once, and attempts that their hosts must stop.
select ordinal, host_id, invocation_id, ended from jobs_internal.cancel_targets($1, $2, $3, $4);

-- name: time_out
-- The targets that waited and are over now.
select time_out_targets as ordinal from jobs_internal.time_out_targets($1, $2, $3, $4);

-- name: close_cancellation
-- Nothing of it runs any more, and this is what it took.
select jobs_internal.close_cancellation($1, $2, $3);
