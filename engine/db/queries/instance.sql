-- name: transaction_settings
-- Settings of one transaction, whatever the database or the role presets. The last two are planner switches: see
-- session_settings.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
       pg_catalog.set_config('statement_timeout', '10s', true),
       pg_catalog.set_config('lock_timeout', '5s', true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', true),
       pg_catalog.set_config('enable_seqscan', 'off', true),
       pg_catalog.set_config('jit', 'off', true);

-- name: session_settings
-- The same for a session whose statements are transactions of their own. The functions of the engine touch few rows by
-- key, and the planner may have seen their tables empty: no sequential scans, plans that are made once. Without jit,
-- since the cost of a disabled scan would always compile the plan.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
       pg_catalog.set_config('statement_timeout', '60s', false),
       pg_catalog.set_config('lock_timeout', '5s', false),
       pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
       pg_catalog.set_config('enable_seqscan', 'off', false),
       pg_catalog.set_config('jit', 'off', false),
       pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false);

-- name: fence
-- Fails when another epoch is current; no other epoch can become current until this transaction ends.
select jobs_internal.check_epoch($1);

-- name: install_epoch
-- True when this epoch has become current, false when a newer one is.
select jobs_internal.install_epoch($1, $2, $3, $4);

-- name: heartbeat
-- Records a heartbeat of the engine; returns the state that it must follow.
select paused, draining, schema_version, directory_revision from jobs_internal.heartbeat($1);

-- name: adopt_hosts
-- Adopts every host that has not ended, with this number of slots.
select host_id, host_name, pid, slots, state, heartbeat_at from jobs_internal.adopt_hosts($1, $2);

-- name: register_host
-- Registers a host, which can then get tasks.
select jobs_internal.register_host($1, $2, $3, $4, $5);

-- name: host_heartbeat
-- Records a heartbeat of the host; returns its epoch, state and slots.
select adopted_epoch, current_epoch, paused, draining, state, slots from jobs_internal.host_heartbeat($1, $2);

-- name: drain_hosts
-- Every host ends when its tasks have finished.
select jobs_internal.drain_hosts($1);

-- name: leave_host
-- The host gets no new tasks.
select jobs_internal.mark_host_draining($1);

-- name: end_host
-- The host has ended.
select jobs_internal.end_host($1);

-- name: open_requests
-- Requests without an answer.
select request_id, kind, args::text as args from jobs_internal.open_requests($1);

-- name: answer_request
-- Stores the first answer.
select jobs_internal.answer_request($1, $2, $3::text::jsonb);

-- name: group_document
-- All that resolving a group needs.
select jobs_internal.group_document($1)::text;

-- name: group_uses
-- What steps need at the targets of a group.
select credential_id, role, guarded, writes, steps from jobs_internal.group_uses($1);

-- name: credential_named
-- The credential with a name, sealed or as a reference.
select credential_id, row_version, name, username, secret, servers from jobs_internal.read_credential($1);
