-- name: guard
-- Nothing that the database or the role preset has a say in this transaction; nobody waits long.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
       pg_catalog.set_config('statement_timeout', $1, true),
       pg_catalog.set_config('lock_timeout', '5s', true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', true);

-- name: begin_command
-- Whether the command was run before, and what it answered then.
select known, result::text as result from jobs_internal.begin_command_v1($1, $2, $3, $4, $5);

-- name: end_command
-- Keeps the answer for a repeat.
select jobs_internal.end_command_v1($1, $2::text::jsonb);

-- name: verify
-- Whose schema it is, its version, and what differs from what was installed.
select jobs_internal.verify_v1()::text;

-- name: read_epoch
-- Who is in charge.
select jobs_internal.read_epoch_v1()::text;

-- name: set_draining
-- Nothing new starts any more.
select jobs_internal.set_draining_v1($1)::text;

-- name: set_paused
-- Whether anything new may start.
select jobs_internal.set_paused_v1($1)::text;

-- name: sync_directory
-- The directory shows exactly these servers.
select jobs_internal.sync_directory_v1($1, $2::text::jsonb)::text;
