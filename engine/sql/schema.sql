-- Written by `python -P -m nodeagent.snapshot` and never run: what migrations/, functions/ and views/
-- lead to, for reviewers.

create schema jobs;

create schema jobs_internal;

create table jobs_internal.account_key (
    public_key text not null,
    added_at timestamp with time zone not null default clock_timestamp(),
    retired_at timestamp with time zone,
    constraint a_public_key_has_32_bytes CHECK ((octet_length(decode(public_key, 'base64'::text)) = 32)),
    constraint account_key_pkey PRIMARY KEY (public_key)
);
CREATE UNIQUE INDEX one_key_is_current ON jobs_internal.account_key USING btree ((true)) WHERE (retired_at IS NULL);

create table jobs_internal.audit (
    audit_id bigint not null identity,
    at timestamp with time zone not null default clock_timestamp(),
    action text not null,
    caller text not null,
    login text not null,
    door text not null,
    command_id uuid,
    detail jsonb not null default '{}'::jsonb,
    constraint an_audit_door_is_known CHECK ((door = ANY (ARRAY['rest'::text, 'fsm'::text, 'psql'::text]))),
    constraint audit_pkey PRIMARY KEY (audit_id)
);
CREATE INDEX audit_by_age ON jobs_internal.audit USING btree (at);
CREATE INDEX audit_by_command ON jobs_internal.audit USING btree (command_id) WHERE (command_id IS NOT NULL);

create table jobs_internal.cancellation (
    cancellation_id uuid not null default gen_random_uuid(),
    job_execution_id uuid not null,
    step_id integer,
    ordinal integer,
    requested_by text not null,
    door text not null,
    reason text,
    requested_at timestamp with time zone not null default clock_timestamp(),
    completed_at timestamp with time zone,
    cancel_method text,
    constraint a_cancelled_target_has_a_step CHECK (((ordinal IS NULL) OR (step_id IS NOT NULL))),
    constraint a_door_of_a_cancellation_is_known CHECK ((door = ANY (ARRAY['rest'::text, 'fsm'::text, 'psql'::text, 'engine'::text]))),
    constraint cancellation_job_execution_id_fkey FOREIGN KEY (job_execution_id) REFERENCES job_execution(job_execution_id) ON DELETE CASCADE,
    constraint cancellation_pkey PRIMARY KEY (cancellation_id),
    constraint what_was_needed_is_known CHECK ((cancel_method = ANY (ARRAY['nothing'::text, 'protocol'::text, 'pg_cancel_backend'::text, 'pg_terminate_backend'::text])))
);
CREATE INDEX cancellation_by_run ON jobs_internal.cancellation USING btree (job_execution_id);
CREATE INDEX open_cancellation ON jobs_internal.cancellation USING btree (requested_at) WHERE (completed_at IS NULL);

create table jobs_internal.command_journal (
    command_id uuid not null,
    command text not null,
    args_digest text not null,
    caller text not null,
    door text not null,
    result jsonb,
    at timestamp with time zone not null default clock_timestamp(),
    constraint a_door_is_known CHECK ((door = ANY (ARRAY['rest'::text, 'fsm'::text]))),
    constraint command_journal_pkey PRIMARY KEY (command_id)
);
CREATE INDEX journal_by_age ON jobs_internal.command_journal USING btree (at);

create table jobs_internal.completion (
    host_id uuid not null,
    number bigint not null default nextval('dispatch_number'::regclass),
    report jsonb not null,
    constraint completion_host_id_fkey FOREIGN KEY (host_id) REFERENCES host(host_id) ON DELETE CASCADE,
    constraint completion_pkey PRIMARY KEY (host_id, number)
);

create table jobs_internal.credential (
    credential_id uuid not null default gen_random_uuid(),
    name text not null,
    username text not null,
    secret text not null,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    servers jsonb,
    constraint a_credential_lists_servers CHECK (((servers IS NULL) OR ((jsonb_typeof(servers) = 'array'::text) AND (jsonb_array_length(servers) > 0)))),
    constraint a_secret_is_sealed_or_a_reference CHECK ((secret ~ '^(sealed|env|file|vault):.'::text)),
    constraint credential_pkey PRIMARY KEY (credential_id)
);
CREATE UNIQUE INDEX a_credential_name_is_taken_once ON jobs_internal.credential USING btree (lower(name));

create table jobs_internal.directory_revision (
    singleton boolean not null default true,
    revision bigint not null,
    synced_at timestamp with time zone not null default clock_timestamp(),
    constraint directory_revision_pkey PRIMARY KEY (singleton),
    constraint there_is_one_revision CHECK (singleton)
);

create table jobs_internal.dispatch (
    host_id uuid not null,
    number bigint not null default nextval('dispatch_number'::regclass),
    run_days date[] not null default '{}'::date[],
    runs uuid[] not null default '{}'::uuid[],
    steps integer[] not null default '{}'::integer[],
    ordinals integer[] not null default '{}'::integer[],
    attempts integer[] not null default '{}'::integer[],
    invocations uuid[] not null default '{}'::uuid[],
    cancels uuid[] not null default '{}'::uuid[],
    slots uuid[] not null default '{}'::uuid[],
    constraint dispatch_host_id_fkey FOREIGN KEY (host_id) REFERENCES host(host_id) ON DELETE CASCADE,
    constraint dispatch_pkey PRIMARY KEY (host_id, number),
    constraint each_task_has_its_slot_or_none_has CHECK (((slots = '{}'::uuid[]) OR (cardinality(slots) = cardinality(invocations)))),
    constraint tasks_are_given_in_columns_of_one_length CHECK (((cardinality(run_days) = cardinality(invocations)) AND (cardinality(runs) = cardinality(invocations)) AND (cardinality(steps) = cardinality(invocations)) AND (cardinality(ordinals) = cardinality(invocations)) AND (cardinality(attempts) = cardinality(invocations))))
);

create table jobs_internal.dispatch_lock (

);

create table jobs_internal.host (
    host_id uuid not null,
    epoch bigint not null,
    adopted_epoch bigint not null,
    host_name text not null,
    pid integer not null,
    slots integer not null,
    running integer not null default 0,
    state text not null default 'live'::text,
    registered_at timestamp with time zone not null default clock_timestamp(),
    heartbeat_at timestamp with time zone not null default clock_timestamp(),
    ended_at timestamp with time zone,
    constraint a_host_has_slots CHECK ((slots > 0)),
    constraint a_host_runs_no_less_than_nothing CHECK ((running >= 0)),
    constraint a_host_state_is_known CHECK ((state = ANY (ARRAY['live'::text, 'draining'::text, 'gone'::text]))),
    constraint an_adoption_never_goes_back CHECK ((adopted_epoch >= epoch)),
    constraint host_pkey PRIMARY KEY (host_id),
    constraint only_a_gone_host_has_an_end CHECK (((state = 'gone'::text) = (ended_at IS NOT NULL)))
);
CREATE INDEX host_by_state ON jobs_internal.host USING btree (state) WHERE (state <> 'gone'::text);

create table jobs_internal.instance (
    singleton boolean not null default true,
    account_uid uuid not null,
    identity uuid not null,
    epoch bigint not null default 0,
    generation bigint not null default 0,
    workload_id uuid,
    host_name text,
    version text,
    started_at timestamp with time zone,
    heartbeat_at timestamp with time zone,
    paused boolean not null default false,
    draining boolean not null default false,
    min_engine_version text not null,
    schema_version integer not null,
    installed_at timestamp with time zone not null default clock_timestamp(),
    released_at timestamp with time zone,
    constraint a_schema_version_is_positive CHECK ((schema_version > 0)),
    constraint an_engine_has_a_start CHECK (((workload_id IS NULL) = (started_at IS NULL))),
    constraint an_epoch_has_an_engine CHECK (((epoch = 0) = (workload_id IS NULL))),
    constraint an_epoch_is_never_negative CHECK ((epoch >= 0)),
    constraint instance_pkey PRIMARY KEY (singleton),
    constraint the_epoch_is_a_key UNIQUE (epoch),
    constraint there_is_one_instance CHECK (singleton)
);
CREATE TRIGGER an_epoch_changes_alone BEFORE UPDATE OF epoch ON jobs_internal.instance FOR EACH STATEMENT EXECUTE FUNCTION hold_instance();

create table jobs_internal.job (
    job_id uuid not null default gen_random_uuid(),
    name text not null,
    description text not null default ''::text,
    version integer not null default 0,
    enabled boolean not null default false,
    schedule_type text not null default 'Once'::text,
    schedule_interval_type text not null default 'Once'::text,
    schedule_interval_count integer not null default 1,
    schedule_interval text,
    schedule_cron text,
    schedule_time_zone text,
    schedule_start_time timestamp with time zone not null default '0001-01-01 00:00:00+00'::timestamp with time zone,
    schedule_end_time timestamp with time zone not null default '9999-12-31 11:59:59+00'::timestamp with time zone,
    scheduled_since timestamp with time zone not null default clock_timestamp(),
    next_slot timestamp with time zone,
    misfire_policy text not null default 'runOnce'::text,
    misfire_within_seconds integer,
    overlap text not null default 'skipTarget'::text,
    paused boolean not null default false,
    priority integer not null default 0,
    owner text,
    labels jsonb not null default '{}'::jsonb,
    retention_days integer,
    system boolean not null default false,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    deleted_at timestamp with time zone,
    constraint a_deleted_job_is_never_due CHECK (((deleted_at IS NULL) OR (next_slot IS NULL))),
    constraint a_job_version_counts CHECK ((version >= 0)),
    constraint a_misfire_has_a_limit CHECK ((misfire_within_seconds >= 0)),
    constraint a_misfire_policy_is_known CHECK ((misfire_policy = ANY (ARRAY['runOnce'::text, 'skip'::text]))),
    constraint a_priority_is_small CHECK (((priority >= '-1000'::integer) AND (priority <= 1000))),
    constraint a_retention_lasts CHECK (((retention_days >= 1) AND (retention_days <= 36500))),
    constraint a_schedule_begins_before_it_ends CHECK ((schedule_start_time < schedule_end_time)),
    constraint a_schedule_type_is_known CHECK ((schedule_type = ANY (ARRAY['Once'::text, 'Recurring'::text]))),
    constraint a_time_zone_belongs_to_cron CHECK (((schedule_time_zone IS NULL) OR (schedule_cron IS NOT NULL))),
    constraint an_interval_counts CHECK (((schedule_interval_count >= 1) AND (schedule_interval_count <= 1000000))),
    constraint an_interval_type_is_known CHECK ((schedule_interval_type = ANY (ARRAY['Once'::text, 'Minutes'::text, 'Hours'::text, 'Days'::text, 'Weeks'::text, 'Months'::text]))),
    constraint an_overlap_is_known CHECK ((overlap = ANY (ARRAY['skipTarget'::text, 'skipExecution'::text, 'queueOne'::text, 'allow'::text, 'cancelPrevious'::text]))),
    constraint cron_takes_the_place_of_an_interval CHECK (((schedule_cron IS NULL) OR (schedule_interval_type = 'Once'::text))),
    constraint job_labels_are_an_object CHECK ((jsonb_typeof(labels) = 'object'::text)),
    constraint job_pkey PRIMARY KEY (job_id),
    constraint only_once_has_no_interval CHECK (((schedule_type = 'Once'::text) = ((schedule_interval_type = 'Once'::text) AND (schedule_cron IS NULL))))
);
CREATE UNIQUE INDEX a_job_name_is_taken_once ON jobs_internal.job USING btree (lower(name)) WHERE (deleted_at IS NULL);
CREATE INDEX job_by_next_slot ON jobs_internal.job USING btree (next_slot) WHERE (next_slot IS NOT NULL);
CREATE INDEX job_without_next_slot ON jobs_internal.job USING btree (job_id) WHERE (enabled AND (next_slot IS NULL) AND (deleted_at IS NULL) AND (NOT system));
CREATE TRIGGER a_job_takes_its_outcomes_along AFTER DELETE ON jobs_internal.job REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_outcomes();
CREATE TRIGGER a_new_schedule_is_told AFTER INSERT OR UPDATE OF enabled, next_slot ON jobs_internal.job FOR EACH ROW WHEN ((new.enabled AND (new.next_slot IS NULL) AND (new.deleted_at IS NULL) AND (NOT new.system))) EXECUTE FUNCTION tell_scheduler();

create table jobs_internal.job_execution (
    job_execution_id uuid not null,
    job_id uuid not null,
    job_version integer not null,
    run_day date not null,
    lifecycle text not null default 'Created'::text,
    origin text not null,
    slot timestamp with time zone,
    rerun_of uuid,
    plan_of uuid,
    overrides jsonb not null default '{}'::jsonb,
    actor text not null,
    door text not null,
    priority integer not null default 0,
    create_time timestamp with time zone not null default clock_timestamp(),
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    attempt integer not null default 0,
    not_before timestamp with time zone,
    wait_reason text,
    end_reason text,
    last_message text not null default 'Job execution created.'::text,
    constraint a_door_of_a_run_is_known CHECK ((door = ANY (ARRAY['rest'::text, 'fsm'::text, 'psql'::text, 'engine'::text]))),
    constraint a_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForChildJobExecutions'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_run_belongs_to_the_day_of_its_creation CHECK ((run_day = ((create_time AT TIME ZONE 'UTC'::text))::date)),
    constraint a_run_ends_after_its_steps TRIGGER DEFERRABLE INITIALLY DEFERRED,
    constraint an_origin_is_known CHECK ((origin = ANY (ARRAY['slot'::text, 'caller'::text, 'rerun'::text, 'plan'::text, 'system'::text]))),
    constraint job_execution_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id),
    constraint job_execution_pkey PRIMARY KEY (job_execution_id),
    constraint only_a_rerun_has_an_origin CHECK (((origin = 'rerun'::text) = (rerun_of IS NOT NULL))),
    constraint only_a_slot_has_a_slot CHECK (((origin = 'slot'::text) = (slot IS NOT NULL))),
    constraint what_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))))
);
CREATE UNIQUE INDEX a_slot_fires_once ON jobs_internal.job_execution USING btree (job_id, slot) WHERE (slot IS NOT NULL);
CREATE INDEX job_execution_by_job ON jobs_internal.job_execution USING btree (job_id, create_time DESC, job_execution_id DESC);
CREATE INDEX job_execution_by_time ON jobs_internal.job_execution USING btree (create_time DESC, job_execution_id DESC);
CREATE INDEX live_job_execution ON jobs_internal.job_execution USING btree (job_id) WHERE (end_time IS NULL);
CREATE CONSTRAINT TRIGGER a_run_ends_after_its_steps AFTER UPDATE OF end_time ON jobs_internal.job_execution DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.end_time IS NULL) AND (new.end_time IS NOT NULL))) EXECUTE FUNCTION end_after_steps();
CREATE TRIGGER a_run_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.job_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text)))) EXECUTE FUNCTION refuse_move();

create table jobs_internal.job_step (
    job_id uuid not null,
    version integer not null,
    step_id integer not null,
    name text not null,
    script_hash bytea not null,
    credential_id uuid,
    credential_name text,
    credential_as_given text,
    target_group_id uuid not null,
    target_group_name text not null,
    target_group_as_given text,
    initial_retry_interval_seconds integer not null default 1,
    maximum_retry_interval_seconds integer not null default 120,
    retry_interval_backoff_multiplier real not null default 2.0,
    retry_attempts integer not null default 10,
    timeout_seconds integer not null default 43200,
    output_type text,
    output_credential_id uuid,
    output_credential_name text,
    output_credential_as_given text,
    output_subscription_id text,
    output_resource_group_name text,
    output_server_name text,
    output_database_name text,
    output_schema_name text,
    output_table_name text,
    max_parallelism integer,
    options jsonb not null default '{}'::jsonb,
    content_hash bytea not null,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    constraint a_first_pause_lasts CHECK (((initial_retry_interval_seconds >= 1) AND (initial_retry_interval_seconds <= 2147483))),
    constraint a_pause_grows_to_its_maximum CHECK (((maximum_retry_interval_seconds >= initial_retry_interval_seconds) AND (maximum_retry_interval_seconds <= 2147483))),
    constraint a_pause_never_shrinks CHECK (((retry_interval_backoff_multiplier >= (1)::double precision) AND (retry_interval_backoff_multiplier <= (1000)::double precision))),
    constraint a_step_counts_from_one CHECK ((step_id >= 1)),
    constraint a_timeout_lasts CHECK (((timeout_seconds >= 1) AND (timeout_seconds <= 2147483))),
    constraint an_output_is_complete CHECK ((num_nonnulls(output_type, output_server_name, output_database_name, output_schema_name, output_table_name) = ANY (ARRAY[0, 5]))),
    constraint an_output_is_known CHECK ((output_type = 'SqlDatabase'::text)),
    constraint attempts_are_counted CHECK (((retry_attempts >= 0) AND (retry_attempts <= 2147483))),
    constraint job_step_job_id_version_fkey FOREIGN KEY (job_id, version) REFERENCES job_version(job_id, version) ON DELETE CASCADE,
    constraint job_step_pkey PRIMARY KEY (job_id, version, step_id),
    constraint job_step_script_hash_fkey FOREIGN KEY (script_hash) REFERENCES script(script_hash),
    constraint options_are_an_object CHECK ((jsonb_typeof(options) = 'object'::text)),
    constraint parallelism_allows_something CHECK ((max_parallelism >= 1)),
    constraint steps_have_no_gap TRIGGER DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX a_step_name_is_taken_once ON jobs_internal.job_step USING btree (job_id, version, lower(name));
CREATE INDEX step_by_script ON jobs_internal.job_step USING btree (script_hash);
CREATE CONSTRAINT TRIGGER steps_have_no_gap AFTER INSERT ON jobs_internal.job_step DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION keep_steps_gapless();
CREATE TRIGGER steps_never_change BEFORE UPDATE ON jobs_internal.job_step FOR EACH ROW EXECUTE FUNCTION refuse_change();

create table jobs_internal.job_version (
    job_id uuid not null,
    version integer not null,
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    constraint a_version_counts CHECK ((version >= 0)),
    constraint job_version_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id) ON DELETE CASCADE,
    constraint job_version_pkey PRIMARY KEY (job_id, version)
);

create table jobs_internal.migration (
    name text not null,
    digest text not null,
    applied_at timestamp with time zone not null default clock_timestamp(),
    constraint migration_pkey PRIMARY KEY (name)
);

create table jobs_internal.name_lock (
    name text not null,
    constraint name_lock_pkey PRIMARY KEY (name)
);

create table jobs_internal.private_endpoint (
    private_endpoint_id text not null,
    name text not null,
    server_id text not null,
    status text not null default 'Pending'::text,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    constraint a_private_endpoint_status_is_known CHECK ((status = ANY (ARRAY['Pending'::text, 'Approved'::text, 'Rejected'::text]))),
    constraint private_endpoint_pkey PRIMARY KEY (private_endpoint_id)
);
CREATE UNIQUE INDEX a_private_endpoint_name_is_taken_once ON jobs_internal.private_endpoint USING btree (lower(name));

create table jobs_internal.report_lock (

);

create table jobs_internal.request (
    request_id uuid not null,
    kind text not null,
    args jsonb not null,
    asked_by text not null,
    asked_at timestamp with time zone not null default clock_timestamp(),
    answered_at timestamp with time zone,
    answer jsonb,
    constraint a_request_kind_is_known CHECK ((kind = ANY (ARRAY['resolve'::text, 'why'::text]))),
    constraint an_answer_has_a_time CHECK (((answer IS NULL) = (answered_at IS NULL))),
    constraint request_pkey PRIMARY KEY (request_id)
);
CREATE INDEX request_by_age ON jobs_internal.request USING btree (asked_at);

create table jobs_internal.schema_object (
    kind text not null,
    name text not null,
    fingerprint text not null,
    server_major integer not null,
    constraint schema_object_pkey PRIMARY KEY (kind, name)
);

create table jobs_internal.script (
    script_hash bytea not null,
    body text not null,
    constraint a_script_is_known_by_its_digest CHECK ((script_hash = sha256(convert_to(body, 'UTF8'::name)))),
    constraint a_script_is_no_larger_than_a_mebibyte CHECK (((octet_length(body) >= 1) AND (octet_length(body) <= 1048576))),
    constraint script_pkey PRIMARY KEY (script_hash)
);

create table jobs_internal.server_contact (
    server_id text not null,
    server_version integer not null,
    max_connections integer not null,
    budget integer not null,
    seen_at timestamp with time zone not null default clock_timestamp(),
    constraint a_budget_lets_two_in CHECK ((budget >= 2)),
    constraint server_contact_pkey PRIMARY KEY (server_id)
);

create table jobs_internal.server_directory (
    server_id text not null,
    name text not null,
    hosts text[] not null,
    port integer not null,
    ssl_mode text not null,
    ca_certificate text,
    pooling text not null default 'none'::text,
    direct_host text,
    target_session_attrs text not null default 'any'::text,
    maintenance_database text not null default 'postgres'::text,
    max_connections integer,
    connections_per_second real,
    slots_per_database integer,
    pools jsonb not null default '[]'::jsonb,
    labels jsonb not null default '{}'::jsonb,
    worker_pool text,
    job_credential text,
    disabled boolean not null default false,
    revision bigint not null,
    embedded boolean not null default false,
    client_certificate text,
    client_key text,
    client_key_fingerprint text,
    constraint a_budget_allows_something CHECK ((max_connections > 0)),
    constraint a_client_certificate_has_its_key CHECK ((num_nonnulls(client_certificate, client_key, client_key_fingerprint) = ANY (ARRAY[0, 3]))),
    constraint a_client_key_is_sealed CHECK ((client_key ~~ 'sealed:%'::text)),
    constraint a_pooling_is_known CHECK ((pooling = ANY (ARRAY['none'::text, 'session'::text, 'transaction'::text]))),
    constraint a_port_is_a_port CHECK (((port >= 1) AND (port <= 65535))),
    constraint a_rate_allows_something CHECK ((connections_per_second > (0)::double precision)),
    constraint a_server_has_a_host CHECK ((cardinality(hosts) > 0)),
    constraint an_ssl_mode_is_known CHECK ((ssl_mode = ANY (ARRAY['verify-full'::text, 'require'::text, 'disable'::text]))),
    constraint labels_are_an_object CHECK ((jsonb_typeof(labels) = 'object'::text)),
    constraint pools_are_a_list CHECK ((jsonb_typeof(pools) = 'array'::text)),
    constraint server_directory_pkey PRIMARY KEY (server_id),
    constraint slots_allow_something CHECK ((slots_per_database > 0))
);
CREATE UNIQUE INDEX a_server_name_is_taken_once ON jobs_internal.server_directory USING btree (lower(name));
CREATE INDEX server_by_host ON jobs_internal.server_directory USING gin (hosts);

create table jobs_internal.slot (
    job_id uuid not null,
    slot timestamp with time zone not null,
    outcome text not null,
    reason text,
    job_execution_id uuid,
    decided_at timestamp with time zone not null default clock_timestamp(),
    constraint a_fired_slot_has_a_run CHECK (((outcome = 'fired'::text) = (job_execution_id IS NOT NULL))),
    constraint a_slot_outcome_is_known CHECK ((outcome = ANY (ARRAY['fired'::text, 'coalesced'::text, 'missed'::text, 'skipped'::text]))),
    constraint slot_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id) ON DELETE CASCADE,
    constraint slot_pkey PRIMARY KEY (job_id, slot)
);

create table jobs_internal.snapshot (
    snapshot_id uuid not null,
    target_group_id uuid not null,
    group_hash bytea not null,
    directory_revision bigint not null,
    targets integer not null,
    targets_hash bytea not null,
    left_out jsonb not null default '[]'::jsonb,
    made_at timestamp with time zone not null default clock_timestamp(),
    constraint snapshot_pkey PRIMARY KEY (snapshot_id)
);
CREATE INDEX snapshot_by_age ON jobs_internal.snapshot USING btree (made_at);

create table jobs_internal.snapshot_target (
    snapshot_id uuid not null,
    ordinal integer not null,
    target_id uuid not null,
    target_type text not null,
    server_id text not null,
    server_name text not null,
    pool_name text,
    database_name text,
    schema_name text,
    labels jsonb not null default '{}'::jsonb,
    credential_id uuid,
    rule uuid not null,
    constraint a_target_is_taken_once UNIQUE (snapshot_id, target_id),
    constraint snapshot_target_pkey PRIMARY KEY (snapshot_id, ordinal),
    constraint snapshot_target_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES snapshot(snapshot_id) ON DELETE CASCADE
);

create table jobs_internal.step_execution (
    run_day date not null,
    job_execution_id uuid not null,
    step_id integer not null,
    step_execution_id uuid not null default gen_random_uuid(),
    step_name text not null,
    content_hash bytea not null,
    snapshot_id uuid,
    lifecycle text not null default 'Created'::text,
    create_time timestamp with time zone not null default clock_timestamp(),
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    wave integer not null default 1,
    waves integer not null default 1,
    halted_at timestamp with time zone,
    wait_reason text,
    end_reason text,
    last_message text not null default ''::text,
    constraint a_step_ends_after_its_targets TRIGGER DEFERRABLE INITIALLY DEFERRED,
    constraint a_step_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForChildJobExecutions'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_step_that_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text])))),
    constraint step_execution_pkey PRIMARY KEY (run_day, job_execution_id, step_id)
);
CREATE INDEX step_execution_by_snapshot ON ONLY jobs_internal.step_execution USING btree (snapshot_id);
CREATE TRIGGER a_step_belongs_to_a_live_run BEFORE INSERT ON jobs_internal.step_execution FOR EACH ROW EXECUTE FUNCTION refuse_orphan();
CREATE CONSTRAINT TRIGGER a_step_ends_after_its_targets AFTER UPDATE OF end_time ON jobs_internal.step_execution DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.end_time IS NULL) AND (new.end_time IS NOT NULL))) EXECUTE FUNCTION end_after_targets();
CREATE TRIGGER a_step_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.step_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text)))) EXECUTE FUNCTION refuse_move();

create table jobs_internal.target_execution (
    run_day date not null,
    job_execution_id uuid not null,
    step_id integer not null,
    ordinal integer not null,
    target_execution_id uuid not null default gen_random_uuid(),
    snapshot_id uuid not null,
    lifecycle text not null default 'Created'::text,
    phase text,
    wave integer not null default 1,
    priority integer not null default 0,
    attempts integer not null default 0,
    worker_pool text,
    not_before timestamp with time zone,
    create_time timestamp with time zone not null default clock_timestamp(),
    start_time timestamp with time zone,
    attempt_start_time timestamp with time zone,
    end_time timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    wait_reason text,
    end_reason text,
    last_message text,
    checkpoint jsonb,
    tried_at timestamp with time zone,
    free_attempts integer not null default 0,
    constraint a_phase_is_known CHECK ((phase = ANY (ARRAY['connect'::text, 'run'::text, 'commit'::text, 'verify'::text, 'output'::text]))),
    constraint a_target_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_target_that_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text])))),
    constraint attempts_never_vanish CHECK ((attempts >= 0)),
    constraint target_execution_pkey PRIMARY KEY (run_day, job_execution_id, step_id, ordinal)
);
CREATE TRIGGER a_target_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.target_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text) OR ((((old.lifecycle = 'Created'::text) AND (new.lifecycle = 'WaitingForRetry'::text)) OR ((old.lifecycle = 'WaitingForRetry'::text) AND (new.lifecycle = 'Succeeded'::text))) OR ((old.lifecycle = 'Created'::text) AND (new.lifecycle = 'Succeeded'::text)))))) EXECUTE FUNCTION refuse_move();

create table jobs_internal.target_group (
    target_group_id uuid not null default gen_random_uuid(),
    name text not null,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    constraint target_group_pkey PRIMARY KEY (target_group_id)
);
CREATE UNIQUE INDEX a_target_group_name_is_taken_once ON jobs_internal.target_group USING btree (lower(name));

create table jobs_internal.target_group_member (
    target_group_id uuid not null,
    target_id uuid not null default gen_random_uuid(),
    position integer not null,
    membership_type text not null default 'Include'::text,
    target_type text not null,
    server_name text,
    database_name text,
    elastic_pool_name text,
    shard_map_name text,
    schema_pattern text,
    query text,
    nested_group_id uuid,
    nested_group_as_given text,
    refresh_credential_id uuid,
    refresh_as_given text,
    credential_id uuid,
    credential_as_given text,
    subscription_id text,
    resource_group_name text,
    constraint a_database_is_named CHECK (((target_type <> ALL (ARRAY['SqlDatabase'::text, 'SqlQuery'::text, 'SqlShardMap'::text])) OR (database_name IS NOT NULL))),
    constraint a_membership_is_known CHECK ((membership_type = ANY (ARRAY['Include'::text, 'Exclude'::text]))),
    constraint a_nested_group_is_named CHECK (((target_type = 'TargetGroup'::text) = (nested_group_id IS NOT NULL))),
    constraint a_pool_is_named CHECK (((target_type = 'SqlElasticPool'::text) = (elastic_pool_name IS NOT NULL))),
    constraint a_query_is_given CHECK (((target_type = 'SqlQuery'::text) = (query IS NOT NULL))),
    constraint a_schema_has_a_pattern CHECK (((target_type = 'SqlSchema'::text) = (schema_pattern IS NOT NULL))),
    constraint a_shard_map_is_named CHECK (((target_type = 'SqlShardMap'::text) = (shard_map_name IS NOT NULL))),
    constraint a_target_names_its_server CHECK (((target_type = 'TargetGroup'::text) = (server_name IS NULL))),
    constraint a_target_type_is_known CHECK ((target_type = ANY (ARRAY['SqlServer'::text, 'SqlElasticPool'::text, 'SqlDatabase'::text, 'SqlShardMap'::text, 'SqlSchema'::text, 'SqlQuery'::text, 'TargetGroup'::text]))),
    constraint positions_are_taken_once UNIQUE (target_group_id, "position"),
    constraint target_group_member_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(credential_id),
    constraint target_group_member_nested_group_id_fkey FOREIGN KEY (nested_group_id) REFERENCES target_group(target_group_id),
    constraint target_group_member_pkey PRIMARY KEY (target_group_id, target_id),
    constraint target_group_member_refresh_credential_id_fkey FOREIGN KEY (refresh_credential_id) REFERENCES credential(credential_id),
    constraint target_group_member_target_group_id_fkey FOREIGN KEY (target_group_id) REFERENCES target_group(target_group_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX a_member_stands_once ON jobs_internal.target_group_member USING btree (target_group_id, membership_type, target_type, COALESCE(lower(server_name), ''::text), COALESCE(database_name, ''::text), COALESCE(lower(elastic_pool_name), ''::text), COALESCE(shard_map_name, ''::text), COALESCE(schema_pattern, ''::text), md5(COALESCE(query, ''::text)), COALESCE(nested_group_id, '00000000-0000-0000-0000-000000000000'::uuid));
CREATE INDEX member_by_credential ON jobs_internal.target_group_member USING btree (credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX member_by_nested_group ON jobs_internal.target_group_member USING btree (nested_group_id) WHERE (nested_group_id IS NOT NULL);
CREATE INDEX member_by_refresh_credential ON jobs_internal.target_group_member USING btree (refresh_credential_id) WHERE (refresh_credential_id IS NOT NULL);
CREATE TRIGGER groups_form_no_circle AFTER INSERT OR UPDATE OF nested_group_id ON jobs_internal.target_group_member FOR EACH ROW WHEN ((new.nested_group_id IS NOT NULL)) EXECUTE FUNCTION refuse_cycle();

create table jobs_internal.target_ledger (
    job_id uuid not null,
    content_hash bytea not null,
    target_id uuid not null,
    lifecycle text not null,
    end_reason text,
    job_execution_id uuid not null,
    step_id integer not null,
    ended_at timestamp with time zone not null,
    result_hash bytea,
    constraint target_ledger_pkey PRIMARY KEY (job_id, content_hash, target_id)
);

create table jobs_internal.task (
    run_day date not null,
    job_execution_id uuid not null,
    step_id integer not null,
    ordinal integer not null,
    attempt integer not null,
    invocation_id uuid not null,
    epoch bigint not null,
    host_id uuid not null,
    lifecycle text not null default 'Created'::text,
    create_time timestamp with time zone not null default clock_timestamp(),
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    lease_until timestamp with time zone,
    backend_pid integer,
    server_version integer,
    xact_id text,
    statement_no integer,
    sqlstate text,
    message text,
    detail text,
    hint text,
    error_position integer,
    error_fingerprint text,
    notices jsonb,
    results jsonb,
    result_hash bytea,
    rows bigint,
    bytes bigint,
    timings jsonb,
    end_reason text,
    context text,
    blockers jsonb,
    disowned uuid,
    constraint a_reservation_is_no_attempt CHECK (
CASE lifecycle
    WHEN 'Created'::text THEN (start_time IS NULL)
    WHEN 'Canceled'::text THEN true
    ELSE (start_time IS NOT NULL)
END),
    constraint a_task_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text]))),
    constraint a_task_that_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text])))),
    constraint task_pkey PRIMARY KEY (run_day, job_execution_id, step_id, ordinal, attempt)
);
CREATE UNIQUE INDEX one_live_attempt ON ONLY jobs_internal.task USING btree (run_day, job_execution_id, step_id, ordinal) WHERE (lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text]));
CREATE TRIGGER a_task_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.task FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text) OR ((old.lifecycle = 'Created'::text) AND (new.lifecycle = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'TimedOut'::text])))))) EXECUTE FUNCTION refuse_move();

create view jobs.deleted_job_executions as
SELECT job_execution_id,
    job_name,
    job_id,
    job_version,
    step_id,
    is_active,
    lifecycle,
    create_time,
    start_time,
    end_time,
    current_attempts,
    current_attempt_start_time,
    next_attempt_start_time,
    last_message,
    target_type,
    target_id,
    target_group_name,
    target_server_name,
    target_database_name,
    target_schema_name,
    step_name,
    target_execution_id,
    phase,
    wave,
    wait_reason,
    end_reason,
    cancel_requested_at,
    origin,
    slot,
    actor,
    door,
    deleted_at
   FROM all_job_executions
  WHERE (deleted_at IS NOT NULL);

create view jobs.job_cancellations as
SELECT c.cancellation_id,
    c.job_execution_id,
    j.name AS job_name,
    j.job_id,
    c.step_id,
    d.target_id,
    c.requested_by,
    c.door,
    c.reason,
    c.requested_at,
    c.completed_at,
    c.cancel_method AS needed
   FROM ((((cancellation c
     JOIN job_execution x ON ((x.job_execution_id = c.job_execution_id)))
     JOIN job j ON ((j.job_id = x.job_id)))
     LEFT JOIN step_execution s ON (((s.run_day = x.run_day) AND (s.job_execution_id = x.job_execution_id) AND (s.step_id = c.step_id))))
     LEFT JOIN snapshot_target d ON (((d.snapshot_id = s.snapshot_id) AND (d.ordinal = c.ordinal))))
  WHERE (j.deleted_at IS NULL);

create view jobs.job_executions as
SELECT job_execution_id,
    job_name,
    job_id,
    job_version,
    step_id,
    is_active,
    lifecycle,
    create_time,
    start_time,
    end_time,
    current_attempts,
    current_attempt_start_time,
    next_attempt_start_time,
    last_message,
    target_type,
    target_id,
    target_group_name,
    target_server_name,
    target_database_name,
    target_schema_name,
    step_name,
    target_execution_id,
    phase,
    wave,
    wait_reason,
    end_reason,
    cancel_requested_at,
    origin,
    slot,
    actor,
    door
   FROM all_job_executions
  WHERE ((deleted_at IS NULL) AND (origin <> 'system'::text));

create view jobs.job_slots as
SELECT j.name AS job_name,
    j.job_id,
    s.slot,
    s.outcome,
    s.reason,
    s.job_execution_id,
    s.decided_at
   FROM (slot s
     JOIN job j ON ((j.job_id = s.job_id)))
  WHERE ((j.deleted_at IS NULL) AND (NOT j.system));

create view jobs.job_versions as
SELECT j.name AS job_name,
    j.job_id,
    v.version AS job_version,
    v.created_by,
    v.created_at
   FROM (job j
     JOIN job_version v ON ((v.job_id = j.job_id)))
  WHERE ((j.deleted_at IS NULL) AND (NOT j.system));

create view jobs.jobs as
SELECT name AS job_name,
    job_id,
    version AS job_version,
    description,
    enabled,
    schedule_interval_type,
    schedule_interval_count,
    schedule_start_time,
    schedule_end_time,
    schedule_cron,
    schedule_time_zone,
    NULLIF(next_slot, 'infinity'::timestamp with time zone) AS next_slot,
    misfire_policy,
    misfire_within_seconds,
    overlap,
    paused,
    priority,
    owner,
    labels,
    retention_days,
    system,
    row_version,
    created_by,
    created_at,
    modified_by,
    modified_at
   FROM job j
  WHERE ((deleted_at IS NULL) AND (NOT system));

create view jobs.jobstep_versions as
SELECT j.name AS job_name,
    j.job_id,
    s.version AS job_version,
    s.step_id,
    s.name AS step_name,
    'TSql'::text AS command_type,
    'Inline'::text AS command_source,
    c.body AS command,
    s.credential_name,
    s.target_group_name,
    s.target_group_id,
    s.initial_retry_interval_seconds,
    s.maximum_retry_interval_seconds,
    s.retry_interval_backoff_multiplier,
    s.retry_attempts,
    s.timeout_seconds AS step_timeout_seconds,
    s.output_type,
    s.output_credential_name,
    s.output_subscription_id,
    s.output_resource_group_name,
    s.output_server_name,
    s.output_database_name,
    s.output_schema_name,
    s.output_table_name,
    s.max_parallelism,
    s.options,
    s.row_version,
    s.created_by,
    s.created_at,
    s.modified_by,
    s.modified_at
   FROM ((job j
     JOIN job_step s ON ((s.job_id = j.job_id)))
     JOIN script c ON ((c.script_hash = s.script_hash)))
  WHERE ((j.deleted_at IS NULL) AND (NOT j.system));

create view jobs.jobsteps as
SELECT j.name AS job_name,
    j.job_id,
    s.version AS job_version,
    s.step_id,
    s.name AS step_name,
    'TSql'::text AS command_type,
    'Inline'::text AS command_source,
    c.body AS command,
    s.credential_name,
    s.target_group_name,
    s.target_group_id,
    s.initial_retry_interval_seconds,
    s.maximum_retry_interval_seconds,
    s.retry_interval_backoff_multiplier,
    s.retry_attempts,
    s.timeout_seconds AS step_timeout_seconds,
    s.output_type,
    s.output_credential_name,
    s.output_subscription_id,
    s.output_resource_group_name,
    s.output_server_name,
    s.output_database_name,
    s.output_schema_name,
    s.output_table_name,
    s.max_parallelism,
    s.options,
    s.row_version,
    s.created_by,
    s.created_at,
    s.modified_by,
    s.modified_at
   FROM ((job j
     JOIN job_step s ON (((s.job_id = j.job_id) AND (s.version = j.version))))
     JOIN script c ON ((c.script_hash = s.script_hash)))
  WHERE ((j.deleted_at IS NULL) AND (NOT j.system));

create view jobs.system_jobs as
SELECT j.name AS job_name,
    j.job_id,
    j.description,
    j.enabled,
    j.schedule_interval_type,
    j.schedule_interval_count,
    j.next_slot AS next_run_time,
    j.retention_days,
    r.create_time AS last_run_time,
    r.job_execution_id AS last_job_execution_id,
    r.lifecycle AS last_lifecycle,
    r.last_message,
    j.modified_by,
    j.modified_at
   FROM (job j
     LEFT JOIN LATERAL ( SELECT x.create_time,
            x.job_execution_id,
            x.lifecycle,
            x.last_message
           FROM job_execution x
          WHERE (x.job_id = j.job_id)
          ORDER BY x.create_time DESC, x.job_execution_id DESC
         LIMIT 1) r ON (true))
  WHERE (j.system AND (j.deleted_at IS NULL));

create view jobs.target_group_members as
SELECT g.name AS target_group_name,
    g.target_group_id,
    m.membership_type,
    m.target_type,
    m.target_id,
    r.name AS refresh_credential_name,
    m.subscription_id,
    m.resource_group_name,
    m.server_name,
    m.database_name,
    m.elastic_pool_name,
    m.shard_map_name,
    m.schema_pattern,
    m.query,
    n.name AS nested_group_name,
    m.nested_group_id,
    c.name AS credential_name,
    m."position"
   FROM ((((target_group g
     JOIN target_group_member m ON ((m.target_group_id = g.target_group_id)))
     LEFT JOIN credential r ON ((r.credential_id = m.refresh_credential_id)))
     LEFT JOIN credential c ON ((c.credential_id = m.credential_id)))
     LEFT JOIN target_group n ON ((n.target_group_id = m.nested_group_id)));

create view jobs.target_groups as
SELECT name AS target_group_name,
    target_group_id,
    row_version,
    created_by,
    created_at,
    modified_by,
    modified_at
   FROM target_group g;

create view jobs_internal.all_job_executions as
SELECT x.job_execution_id,
    j.name AS job_name,
    x.job_id,
    x.job_version,
    NULL::integer AS step_id,
    (x.end_time IS NULL) AS is_active,
    x.lifecycle,
    x.create_time,
    x.start_time,
    x.end_time,
    0 AS current_attempts,
    NULL::timestamp with time zone AS current_attempt_start_time,
    x.not_before AS next_attempt_start_time,
    x.last_message,
    NULL::text AS target_type,
    NULL::uuid AS target_id,
    NULL::text AS target_group_name,
    NULL::text AS target_server_name,
    NULL::text AS target_database_name,
    NULL::text AS target_schema_name,
    NULL::text AS step_name,
    NULL::uuid AS target_execution_id,
    NULL::text AS phase,
    NULL::integer AS wave,
    x.wait_reason,
    x.end_reason,
    x.cancel_requested_at,
    x.origin,
    x.slot,
    x.actor,
    x.door,
    j.deleted_at
   FROM (job_execution x
     JOIN job j ON ((j.job_id = x.job_id)))
UNION ALL
 SELECT x.job_execution_id,
    j.name AS job_name,
    x.job_id,
    x.job_version,
    s.step_id,
    (s.end_time IS NULL) AS is_active,
    s.lifecycle,
    s.create_time,
    s.start_time,
    s.end_time,
    0 AS current_attempts,
    NULL::timestamp with time zone AS current_attempt_start_time,
    NULL::timestamp with time zone AS next_attempt_start_time,
    s.last_message,
    NULL::text AS target_type,
    NULL::uuid AS target_id,
    NULL::text AS target_group_name,
    NULL::text AS target_server_name,
    NULL::text AS target_database_name,
    NULL::text AS target_schema_name,
    s.step_name,
    NULL::uuid AS target_execution_id,
    NULL::text AS phase,
    s.wave,
    s.wait_reason,
    s.end_reason,
    s.cancel_requested_at,
    x.origin,
    x.slot,
    x.actor,
    x.door,
    j.deleted_at
   FROM ((job_execution x
     JOIN job j ON ((j.job_id = x.job_id)))
     JOIN step_execution s ON (((s.run_day = x.run_day) AND (s.job_execution_id = x.job_execution_id))))
UNION ALL
 SELECT x.job_execution_id,
    j.name AS job_name,
    x.job_id,
    x.job_version,
    s.step_id,
    (t.end_time IS NULL) AS is_active,
    t.lifecycle,
    t.create_time,
    t.start_time,
    t.end_time,
    t.attempts AS current_attempts,
    t.attempt_start_time AS current_attempt_start_time,
    t.not_before AS next_attempt_start_time,
    t.last_message,
    d.target_type,
    d.target_id,
    g.target_group_name,
    d.server_name AS target_server_name,
    d.database_name AS target_database_name,
    d.schema_name AS target_schema_name,
    s.step_name,
    t.target_execution_id,
    t.phase,
    t.wave,
    t.wait_reason,
    t.end_reason,
    t.cancel_requested_at,
    x.origin,
    x.slot,
    x.actor,
    x.door,
    j.deleted_at
   FROM (((((job_execution x
     JOIN job j ON ((j.job_id = x.job_id)))
     JOIN step_execution s ON (((s.run_day = x.run_day) AND (s.job_execution_id = x.job_execution_id))))
     JOIN target_execution t ON (((t.run_day = s.run_day) AND (t.job_execution_id = s.job_execution_id) AND (t.step_id = s.step_id))))
     JOIN snapshot_target d ON (((d.snapshot_id = t.snapshot_id) AND (d.ordinal = t.ordinal))))
     LEFT JOIN job_step g ON (((g.job_id = x.job_id) AND (g.version = x.job_version) AND (g.step_id = s.step_id))));

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_add_credential(credential_name text, identity text, secret text, servers text[] DEFAULT NULL::text[], OUT credential_id uuid)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_add_job(job_name text, description text DEFAULT NULL::text, enabled boolean DEFAULT false, schedule_interval_type text DEFAULT NULL::text, schedule_interval_count integer DEFAULT 1, schedule_start_time timestamp with time zone DEFAULT '0001-01-01 00:00:00+00'::timestamp with time zone, schedule_end_time timestamp with time zone DEFAULT '9999-12-31 11:59:59+00'::timestamp with time zone, OUT job_id uuid, schedule_cron text DEFAULT NULL::text, schedule_time_zone text DEFAULT NULL::text, misfire_policy text DEFAULT 'runOnce'::text, misfire_within_seconds integer DEFAULT NULL::integer, overlap text DEFAULT 'skipTarget'::text, paused boolean DEFAULT false, priority integer DEFAULT 0, owner text DEFAULT NULL::text, labels jsonb DEFAULT '{}'::jsonb, retention_days integer DEFAULT NULL::integer)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_add_jobstep(job_name text, step_id integer DEFAULT NULL::integer, step_name text DEFAULT NULL::text, command_type text DEFAULT 'TSql'::text, command_source text DEFAULT 'Inline'::text, command text DEFAULT NULL::text, credential_name text DEFAULT NULL::text, target_group_name text DEFAULT NULL::text, initial_retry_interval_seconds integer DEFAULT 1, maximum_retry_interval_seconds integer DEFAULT 120, retry_interval_backoff_multiplier real DEFAULT 2.0, retry_attempts integer DEFAULT 10, step_timeout_seconds integer DEFAULT 43200, output_type text DEFAULT NULL::text, output_credential_name text DEFAULT NULL::text, output_subscription_id text DEFAULT NULL::text, output_resource_group_name text DEFAULT NULL::text, output_server_name text DEFAULT NULL::text, output_database_name text DEFAULT NULL::text, output_schema_name text DEFAULT NULL::text, output_table_name text DEFAULT NULL::text, OUT job_version integer, max_parallelism integer DEFAULT NULL::integer, options jsonb DEFAULT '{}'::jsonb)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_add_target_group(target_group_name text, OUT target_group_id uuid)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_add_target_group_member(target_group_name text, membership_type text DEFAULT 'Include'::text, target_type text DEFAULT NULL::text, refresh_credential_name text DEFAULT NULL::text, server_name text DEFAULT NULL::text, database_name text DEFAULT NULL::text, elastic_pool_name text DEFAULT NULL::text, OUT target_id uuid, shard_map_name text DEFAULT NULL::text, schema_pattern text DEFAULT NULL::text, query text DEFAULT NULL::text, nested_group_name text DEFAULT NULL::text, credential_name text DEFAULT NULL::text, subscription_id text DEFAULT NULL::text, resource_group_name text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_delete_credential(credential_name text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_delete_job(job_name text, force boolean DEFAULT false)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_delete_jobstep(job_name text, step_id integer DEFAULT NULL::integer, step_name text DEFAULT NULL::text, OUT job_version integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_delete_target_group(target_group_name text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_delete_target_group_member(target_group_name text, target_id uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_grant_admin(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_grant_operator(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_grant_reader(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_pause()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_purge_jobhistory(job_name text DEFAULT NULL::text, job_id uuid DEFAULT NULL::uuid, oldest_date timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_resume()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_revoke_admin(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_revoke_operator(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_revoke_reader(role text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_start_job(job_name text, INOUT job_execution_id uuid DEFAULT NULL::uuid)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_stop_job(job_execution_id uuid, reason text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_stop_step(job_execution_id uuid, step_name text, reason text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin, operator
CREATE OR REPLACE FUNCTION jobs.sp_stop_target(job_execution_id uuid, step_name text, target_id uuid, reason text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_update_credential(credential_name text, identity text DEFAULT NULL::text, secret text DEFAULT NULL::text, servers text[] DEFAULT NULL::text[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_update_job(job_name text, new_name text DEFAULT NULL::text, description text DEFAULT NULL::text, enabled boolean DEFAULT NULL::boolean, schedule_interval_type text DEFAULT NULL::text, schedule_interval_count integer DEFAULT NULL::integer, schedule_start_time timestamp with time zone DEFAULT NULL::timestamp with time zone, schedule_end_time timestamp with time zone DEFAULT NULL::timestamp with time zone, schedule_cron text DEFAULT NULL::text, schedule_time_zone text DEFAULT NULL::text, misfire_policy text DEFAULT NULL::text, misfire_within_seconds integer DEFAULT NULL::integer, overlap text DEFAULT NULL::text, paused boolean DEFAULT NULL::boolean, priority integer DEFAULT NULL::integer, owner text DEFAULT NULL::text, labels jsonb DEFAULT NULL::jsonb, retention_days integer DEFAULT NULL::integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: admin
CREATE OR REPLACE FUNCTION jobs.sp_update_jobstep(job_name text, step_id integer DEFAULT NULL::integer, step_name text DEFAULT NULL::text, new_id integer DEFAULT NULL::integer, new_name text DEFAULT NULL::text, command_type text DEFAULT NULL::text, command_source text DEFAULT NULL::text, command text DEFAULT NULL::text, credential_name text DEFAULT NULL::text, target_group_name text DEFAULT NULL::text, initial_retry_interval_seconds integer DEFAULT NULL::integer, maximum_retry_interval_seconds integer DEFAULT NULL::integer, retry_interval_backoff_multiplier real DEFAULT NULL::real, retry_attempts integer DEFAULT NULL::integer, step_timeout_seconds integer DEFAULT NULL::integer, output_type text DEFAULT NULL::text, output_credential_name text DEFAULT NULL::text, output_server_name text DEFAULT NULL::text, output_database_name text DEFAULT NULL::text, output_schema_name text DEFAULT NULL::text, output_table_name text DEFAULT NULL::text, OUT job_version integer, max_parallelism integer DEFAULT NULL::integer, options jsonb DEFAULT NULL::jsonb, output_subscription_id text DEFAULT NULL::text, output_resource_group_name text DEFAULT NULL::text)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.add_members(p_group uuid, p_members jsonb, p_old jsonb DEFAULT '[]'::jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.adopt_hosts(p_epoch bigint, p_slots integer)
 RETURNS TABLE(host_id uuid, epoch bigint, host_name text, pid integer, slots integer, state text, heartbeat_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.already_recorded(p_results jsonb)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.analyze_tables(p_epoch bigint, p_done text[])
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.answer_request(p_epoch bigint, p_request_id uuid, p_answer jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.attempt_item(p_run job_execution, p_step_name text, p_target_id uuid, p_task task, p_whole boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.begin_command(p_id uuid, p_command text, p_digest text, p_caller text, p_door text, OUT known boolean, OUT result jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.begin_run(p_epoch bigint, p_run uuid)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.begin_system_job(p_epoch bigint, p_job_id uuid, p_run uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.bump_group_version(p_group uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.busy_targets(p_run job_execution, p_snapshot_id uuid)
 RETURNS integer[]
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.cancel_everything(p_epoch bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.cancel_execution(p_job text, p_execution uuid, p_reason text)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.cancel_part(p_job text, p_execution uuid, p_step text, p_target text, p_reason text)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.cancel_targets(p_epoch bigint, p_run uuid, p_step_id integer, p_ordinals integer[])
 RETURNS TABLE(ordinal integer, host_id uuid, invocation_id uuid, ended boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.change_membership(p_group text, p_role text, p_grant boolean)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_command_kind(p_type text, p_source text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_condition(p_condition jsonb, p_row_version bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_cron(p_cron text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.check_epoch(p_epoch bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_job(p_old job, p_new job)
 RETURNS void
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_members(p_members jsonb, p_old jsonb)
 RETURNS void
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_name(p_name text, p_column text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_options(p_options jsonb)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_secret(p_identity text, p_secret text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_step(p_step job_step)
 RETURNS void
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_supported(p_step job_step)
 RETURNS void
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.check_variables(p_text text, p_column text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.close_cancellation(p_epoch bigint, p_id uuid, p_method text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.completion_marks(p_epoch bigint)
 RETURNS TABLE(host_id uuid, number bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.create_partitions(p_epoch bigint)
 RETURNS date[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.create_request(p_request_id uuid, p_kind text, p_args jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.create_step_execution(p_run job_execution, p_step_id integer, p_snapshot_id uuid DEFAULT NULL::uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.create_target_executions(p_run job_execution, p_step_id integer, p_snapshot_id uuid, p_wave_starts integer[] DEFAULT '{}'::integer[])
 RETURNS integer[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET enable_sort TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.credential_item(p_credential credential)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.credential_servers(p_names text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.current_actor(OUT caller text, OUT door text, OUT command_id uuid)
 RETURNS record
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.decide_private_endpoint(p_name text, p_status text, p_server_id text)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.decide_slots(p_epoch bigint, p_jobs uuid[], p_row_versions bigint[], p_next_slots timestamp with time zone[], p_slot_jobs uuid[], p_slots timestamp with time zone[], p_outcomes text[], p_reasons text[], OUT jobs integer, OUT fired integer, OUT skipped integer, OUT coalesced integer, OUT missed integer)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.definition_item(p_path text[], p_uid uuid, p_row_version bigint, p_created_by text, p_created_at timestamp with time zone, p_modified_by text, p_modified_at timestamp with time zone, p_properties jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.definition_reference(p_name text, p_as_given text)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.delete_item(p_kind text, p_path text[], p_condition jsonb, p_options jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.delete_orphans(p_before timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.describe_schema()
 RETURNS TABLE(kind text, name text, definition text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.diagnose()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.disable_broken_schedule(p_epoch bigint, p_job_id uuid, p_row_version bigint, p_why text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.drain_hosts(p_epoch bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.drop_partitions(p_before date)
 RETURNS SETOF date
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET lock_timeout TO '2s';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.due_jobs(p_epoch bigint, p_limit integer)
 RETURNS TABLE(job_id uuid, job_name text, row_version bigint, interval_type text, interval_count integer, cron text, time_zone text, start_time timestamp with time zone, end_time timestamp with time zone, since timestamp with time zone, misfire_policy text, misfire_within_seconds integer, last_slot timestamp with time zone, now timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.due_system_jobs(p_epoch bigint, p_busy uuid[])
 RETURNS TABLE(job_id uuid, job_name text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.edit_distance(p_one text, p_other text)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.end_after_steps()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.end_after_targets()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.end_canceled(p_day date, p_run uuid, p_step_id integer, p_ordinals integer[])
 RETURNS SETOF integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.end_command(p_id uuid, p_result jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_host(p_host uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_last_step(p_epoch bigint, p_run uuid, p_step_id integer, OUT step text, OUT run text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_run(p_epoch bigint, p_run uuid)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_step(p_epoch bigint, p_run uuid, p_step_id integer, p_reason text DEFAULT NULL::text, p_message text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_system_job(p_epoch bigint, p_job_id uuid, p_run uuid, p_lifecycle text, p_message text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.endpoint_digest(p_server server_directory)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.ensure_adhoc_job()
 RETURNS job
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.ensure_partitions(p_day date)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.enter_step(p_epoch bigint, p_run uuid, p_step_id integer)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.execution_filter(p_filters jsonb, p_after jsonb, OUT since timestamp with time zone, OUT until timestamp with time zone, OUT ended_since timestamp with time zone, OUT ended_until timestamp with time zone, OUT active boolean, OUT skip bigint, OUT deleted boolean)
 RETURNS record
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.execution_item(p_run job_execution, p_below text[], p_uid uuid, p_lifecycle text, p_create_time timestamp with time zone, p_start_time timestamp with time zone, p_end_time timestamp with time zone, p_properties jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.expand_dispatch(p_batch dispatch, p_day date)
 RETURNS TABLE(run_day date, job_execution_id uuid, step_id integer, ordinal integer, attempt integer, invocation_id uuid, target_execution_id uuid, job_id uuid, job_version integer, run_create_time timestamp with time zone, overrides jsonb, target_type text, target_id uuid, server_id text, server_name text, pool_name text, database_name text, schema_name text, labels jsonb, credential_id uuid, credential_version bigint, first_start timestamp with time zone, tried_at timestamp with time zone, started boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.explain_target(p_run job_execution, p_step text, p_target text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.fetch_dispatches(p_host uuid, p_after bigint, p_hurried boolean)
 RETURNS TABLE(number bigint, kind text, run_day date, job_execution_id uuid, step_id integer, ordinal integer, attempt integer, invocation_id uuid, target_execution_id uuid, job_id uuid, job_version integer, run_create_time timestamp with time zone, overrides jsonb, target_type text, target_id uuid, server_id text, server_name text, pool_name text, database_name text, schema_name text, labels jsonb, credential_id uuid, credential_version bigint, first_start timestamp with time zone, tried_at timestamp with time zone, started boolean, slot uuid, directory bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.find_jobstep(p_job job, p_id integer, p_name text)
 RETURNS job_step
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.find_run(p_job text, p_execution text, p_deleted boolean)
 RETURNS job_execution
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.find_server(p_name text, p_column text DEFAULT 'server_name'::text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.find_step(p_run job_execution, p_step text)
 RETURNS step_execution
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.find_target(p_step step_execution, p_target text, OUT target target_execution, OUT described snapshot_target)
 RETURNS record
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.forget_outcomes()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.get_current_step(p_run uuid, p_step text)
 RETURNS step_execution
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.get_execution(p_kind text, p_path text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.get_item(p_kind text, p_path text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.group_document(p_group text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.heartbeat(p_epoch bigint, OUT paused boolean, OUT draining boolean, OUT schema_version integer, OUT directory_revision bigint)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.hold_instance()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.host_heartbeat(p_host uuid, p_running integer, OUT adopted_epoch bigint, OUT current_epoch bigint, OUT paused boolean, OUT draining boolean, OUT state text, OUT slots integer)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.install_epoch(p_epoch bigint, p_workload uuid, p_host text, p_version text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET lock_timeout TO '2s';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.iso_time(p_time timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.job_item(p_job job)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.jobstep_item(p_path text[], p_step job_step, p_row_version bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.keep_steps_gapless()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_attempts(p_run job_execution, p_path text[], p_after jsonb, p_top integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_audit(p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_cancellations(p_run job_execution, p_target target_execution)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_errors(p_run job_execution, p_after jsonb, p_top integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_executions(p_kind text, p_path text[], p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.list_items(p_kind text, p_path text[], p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_job_runs(p_job text, p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_messages(p_run job_execution, p_step text, p_after jsonb, p_top integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_sort TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_results(p_run job_execution, p_step text, p_set integer, p_after jsonb, p_top integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_sort TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_run_steps(p_run job_execution, p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_run_targets(p_run job_execution, p_step_id integer, p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.list_runs(p_after jsonb, p_top integer, p_filters jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.live_invocations(p_epoch bigint)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.live_runs(p_epoch bigint, p_known uuid[])
 RETURNS TABLE(job_execution_id uuid, job_id uuid, job_name text, job_version integer, run_day date, create_time timestamp with time zone, priority integer, overlap text, lifecycle text, job_paused boolean, cancel_requested_at timestamp with time zone, overrides jsonb, steps jsonb, reached jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.live_targets(p_epoch bigint, p_run_day date, p_run uuid, p_step_id integer)
 RETURNS TABLE(ordinal integer, lifecycle text, attempts integer, not_before timestamp with time zone, deadline timestamp with time zone, server_id text, pool_name text, database_name text, schema_name text, worker_pool text, attempt integer, host_id uuid, invocation_id uuid, task_lifecycle text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_nestloop TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.lock_dispatch()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.lock_group(p_name text)
 RETURNS target_group
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.lock_job(p_name text)
 RETURNS job
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.lock_name(p_kind text, p_name text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.lock_reports()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.mark_host_draining(p_host uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.may_begin(p_run job_execution)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.member_items(p_group uuid)
 RETURNS jsonb
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.member_key(p_member jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.merge_patch(p_old jsonb, p_patch jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.new_version(p_job job, p_without integer, p_with job_step)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.next_completions(p_hosts uuid[], p_after bigint[])
 RETURNS TABLE(host_id uuid, number bigint, report jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.next_slot(p_epoch bigint)
 RETURNS double precision
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.open_cancellations(p_epoch bigint)
 RETURNS TABLE(cancellation_id uuid, job_execution_id uuid, step_id integer, ordinal integer, requested_at timestamp with time zone, reason text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.open_requests(p_epoch bigint)
 RETURNS TABLE(request_id uuid, kind text, args jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.parent_lifecycle(p_cancelled boolean, p_counts jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.patch_item(p_kind text, p_path text[], p_patch jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.pause_and_cancel()
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.paused_jobs(p_epoch bigint)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.plan_step(p_epoch bigint, p_run uuid, p_step_id integer, p_snapshot_id uuid, p_target_group_id uuid, p_group_hash bytea, p_directory_revision bigint, p_left_out jsonb, p_target_types text[], p_server_ids text[], p_server_names text[], p_pool_names text[], p_database_names text[], p_schema_names text[], p_labels jsonb[], p_credential_ids uuid[], p_rules uuid[], OUT begun text, OUT skipped integer[])
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.plan_targets(p_run job_execution, p_step_id integer, p_snapshot_id uuid, p_wave_starts integer[] DEFAULT '{}'::integer[])
 RETURNS integer[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.poll_updates(p_epoch bigint, p_known uuid[], OUT runs jsonb, OUT orders jsonb, OUT group_name text, OUT document jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.prune_history(p_epoch bigint, p_days integer, OUT days integer, OUT runs integer, OUT more boolean)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.prune_runs(p_days integer, OUT runs integer, OUT more boolean)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.prune_slots(p_days integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.prune_versions()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET lock_timeout TO '1s';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.put_credential(p_name text, p_doc jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.put_job(p_name text, p_doc jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET "TimeZone" TO 'UTC';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.put_private_endpoint(p_name text, p_doc jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.put_step(p_job text, p_name text, p_doc jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.put_system_job(p_old job, p_must jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET lock_timeout TO '1s';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.put_target_group(p_name text, p_doc jsonb, p_condition jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.raise_error(p_state text, p_column text, p_message text, p_hint text DEFAULT NULL::text, p_code text DEFAULT ''::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.reached_servers(p_kind text, p_names text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.read_completions(p_epoch bigint, p_hosts uuid[], p_after bigint[])
 RETURNS TABLE(host_id uuid, number bigint, report jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.read_credentials(p_ids uuid[])
 RETURNS TABLE(credential_id uuid, row_version bigint, name text, username text, secret text, servers jsonb)
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_epoch()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_execution(p_kind text, p_path text[], p_options jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.read_interval(p_text text, OUT interval_type text, OUT interval_count integer)
 RETURNS record
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_journal(p_id uuid)
 RETURNS jsonb
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.read_limits(p_epoch bigint)
 RETURNS TABLE(server_id text, max_connections integer, budget integer, slots_per_database integer, disabled boolean, pools jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_request(p_request_id uuid)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_server_users(p_server_ids text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.read_servers(p_ids text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.record_commit_intents(p_commits jsonb)
 RETURNS uuid[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.record_results(p_results jsonb)
 RETURNS TABLE(invocation_id uuid, lifecycle text, attempts integer, not_before timestamp with time zone, cancel_method text, deadline timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.record_results_as_json(p_results jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refer_to_credential(p_name text, p_column text, OUT credential_id uuid, OUT name text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refer_to_group(p_name text, p_column text, OUT target_group_id uuid, OUT name text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refuse_cycle()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refuse_move()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.refuse_orphan()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.register_host(p_host uuid, p_epoch bigint, p_name text, p_pid integer, p_slots integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.release_tasks(p_returns jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.remember_schema()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.repair_system_jobs(p_epoch bigint)
 RETURNS TABLE(job_name text, differed jsonb, repaired boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET "TimeZone" TO 'UTC';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.report(p_host uuid, p_epoch bigint, p_starts jsonb, p_commits jsonb, p_results jsonb, p_returns jsonb, p_contacts jsonb)
 RETURNS uuid[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.reserve_and_cancel(p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[], p_attempts integer[], p_invocations uuid[], p_cancel_hosts uuid[], p_cancels uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.reserve_and_poll(p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[], p_attempts integer[], p_invocations uuid[], p_slots uuid[], p_known_hosts uuid[], p_after bigint[])
 RETURNS TABLE(host_id uuid, number bigint, report jsonb)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.reserve_tasks(p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[], p_attempts integer[], p_invocations uuid[], p_slots uuid[], p_cancel_hosts uuid[], p_cancels uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.resolve_orphaned_attempts(p_epoch bigint, p_results jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.revoke_host_tasks(p_epoch bigint, p_host uuid)
 RETURNS TABLE(run_day date, job_execution_id uuid, step_id integer, ordinal integer, attempt integer, invocation_id uuid, old_invocation uuid, task_lifecycle text, backend_pid integer, xact_id text, server_id text, database_name text, credential_id uuid, credential_version bigint, start_time timestamp with time zone, idempotent boolean, guard boolean, transaction text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.run_item(p_run job_execution)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.run_page(p_runs uuid[], p_top integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.run_query(p_doc jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.running_attempt(p_epoch bigint, p_run uuid, p_step_id integer, p_ordinal integer)
 RETURNS TABLE(invocation_id uuid, backend_pid integer, server_id text, database_name text, credential_id uuid)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.save_job(p_action text, p_old job, p_new job)
 RETURNS job
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.save_step(p_action text, p_job job, p_old job_step, p_new job_step, p_command text)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.server_names()
 RETURNS TABLE(name text, server_id text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.set_draining(p_draining boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.set_paused(p_paused boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.show_execution(p_kind text, p_path text[], p_deleted boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.start_job(p_job text, p_execution_id uuid, p_doc jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.start_tasks(p_starts jsonb)
 RETURNS uuid[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.step_document(p_job_id uuid, p_version integer, p_step_id integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.step_item(p_run job_execution, p_step step_execution)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.stop_run(p_run job_execution, p_by text, p_door text, p_reason text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.store_snapshot(p_epoch bigint, p_snapshot_id uuid, p_target_group_id uuid, p_group_hash bytea, p_directory_revision bigint, p_left_out jsonb, p_target_types text[], p_server_ids text[], p_server_names text[], p_pool_names text[], p_database_names text[], p_schema_names text[], p_labels jsonb[], p_credential_ids uuid[], p_rules uuid[])
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.summarize_run(p_run job_execution)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_nestloop TO 'off'
 SET enable_sort TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.summary_sentence(p_what text, p_counts jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE STRICT SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.sync_directory(p_revision bigint, p_servers jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.system_job_definitions()
 RETURNS TABLE(job_id uuid, name text, description text, interval_type text, interval_count integer, overlap text, retention_days integer)
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.target_item(p_run job_execution, p_step_name text, p_target target_execution, p_described snapshot_target)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.tell_scheduler()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.text_in_body(p_text text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.time_out_targets(p_epoch bigint, p_run uuid, p_step_id integer, p_ordinals integer[])
 RETURNS SETOF integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.upsert_server_contacts(p_contacts jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.used_by(p_id uuid)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.uuid_or_null(p_text text)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.verify_schema()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.write_audit(p_action text, p_detail jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';
