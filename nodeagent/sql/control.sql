-- name: guard_session
-- Nothing that the database or the role preset has a say in this session.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
       pg_catalog.set_config('statement_timeout', $1, false);

-- name: guard
-- Nothing that the database or the role preset applies in this transaction; waits are short.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
       pg_catalog.set_config('statement_timeout', $1, true),
       pg_catalog.set_config('lock_timeout', '5s', true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', true);

-- name: begin_command
-- Whether the command was run before, and what it answered then.
select known, result::text as result from jobs_internal.begin_command($1, $2, $3, $4, $5);

-- name: end_command
-- Keeps the answer for a repeat.
select jobs_internal.end_command($1, $2::text::jsonb);

-- name: verify
-- Whose schema it is, its version, and what differs from what was installed.
select jobs_internal.verify_schema()::text;

-- name: read_epoch
-- Who is in charge.
select jobs_internal.read_epoch()::text;

-- name: set_draining
-- Nothing new starts any more.
select jobs_internal.set_draining($1)::text;

-- name: set_paused
-- Whether anything new may start.
select jobs_internal.set_paused($1)::text;

-- name: pause_and_cancel
-- Nothing new starts, and what runs is asked to stop.
select jobs_internal.pause_and_cancel()::text;

-- name: sync_directory
-- The directory shows exactly these servers.
select jobs_internal.sync_directory($1, $2::text::jsonb, $3, $4::text::jsonb, $5::text::jsonb)::text;

-- name: get_item
-- One item by kind and path.
select jobs_internal.get_item($1, $2::text[])::text;

-- name: list_items
-- A page of items below a path, after a cursor.
select jobs_internal.list_items($1, $2::text[], $3::text::jsonb, $4::integer, $5::text::jsonb)::text;

-- name: read_execution
-- An execution, or a report on it.
select jobs_internal.read_execution($1, $2::text[], $3::text::jsonb)::text;

-- name: put_credential
-- The credential as it is now.
select jobs_internal.put_credential($1, $2::text::jsonb, $3::text::jsonb)::text;

-- name: put_target_group
-- The target group as it is now.
select jobs_internal.put_target_group($1, $2::text::jsonb, $3::text::jsonb)::text;

-- name: put_job
-- The job as it is now.
select jobs_internal.put_job($1, $2::text::jsonb, $3::text::jsonb)::text;

-- name: put_job_with_steps
-- The job as it is now.
select jobs_internal.put_job_with_steps($1, $2::text::jsonb, $3::text::jsonb, $4::text::jsonb, $5)::text;

-- name: put_step
-- The step as it is now, in the current version of its job.
select jobs_internal.put_step($1, $2, $3::text::jsonb, $4::text::jsonb)::text;

-- name: patch
-- The job or step as it is now.
select jobs_internal.patch_item($1, $2::text[], $3::text::jsonb, $4::text::jsonb)::text;

-- name: put_private_endpoint
-- The private endpoint as it is now.
select jobs_internal.put_private_endpoint($1, $2::text::jsonb, $3::text::jsonb)::text;

-- name: decide_private_endpoint
-- The private endpoint as it is now.
select jobs_internal.decide_private_endpoint($1, $2, $3)::text;

-- name: put_webhook
-- The webhook as it is now.
select jobs_internal.put_webhook($1, $2::text::jsonb, $3::text::jsonb)::text;

-- name: send_test_event
-- An event for this webhook alone is written.
select jobs_internal.send_test_event($1)::text;

-- name: replay_deliveries
-- How many deliveries are due again.
select jobs_internal.replay_deliveries($1, $2::uuid[])::text;

-- name: delete_item
-- Whether there was something to delete.
select jobs_internal.delete_item($1, $2::text[], $3::text::jsonb, $4::text::jsonb)::text;

-- name: start_job
-- The execution, and whether it is new.
select jobs_internal.start_job($1, $2, $3::text::jsonb)::text;

-- name: cancel_execution
-- Whether there was something to stop.
select jobs_internal.cancel_execution($1, $2, $3)::text;

-- name: cancel_part
-- Whether the step or target has ended already.
select jobs_internal.cancel_part($1, $2, $3, $4, $5)::text;

-- name: continue_execution
-- The execution.
select jobs_internal.continue_execution($1, $2, $3)::text;

-- name: rerun_execution
-- The new execution.
select jobs_internal.rerun_execution($1, $2, $3::text::jsonb)::text;

-- name: retry_target
-- The target.
select jobs_internal.retry_target($1, $2, $3, $4)::text;

-- name: run_query
-- The execution.
select jobs_internal.run_query($1::text::jsonb)::text;

-- name: ask
-- The question waits for the engine.
select jobs_internal.create_request($1, $2, $3::text::jsonb)::text;

-- name: read_request
-- The answer, if there is one.
select jobs_internal.read_request($1)::text;

-- name: read_server_users
-- Groups, steps and executions that use one of these servers.
select jobs_internal.read_server_users($1::text[])::text;

-- name: read_reached_servers
-- The servers that jobs or target groups lead to.
select jobs_internal.reached_servers($1, $2::text[])::text;

-- name: diagnose
-- Who stands in the way of the account in its control database.
select jobs_internal.diagnose()::text;

-- name: read_journal
-- Whether a command took effect.
select jobs_internal.read_journal($1)::text;
