-- Written by `python -P -m nodeagent.snapshot` and never run: the types, tables and views that migrations/
-- and views/ create, for reviewers. Functions are in functions/.

create schema jobs;

create schema jobs_internal;

create type jobs_internal.commit_intent as (
    run_day date,
    job_execution_id uuid,
    step_id integer,
    ordinal integer,
    attempt integer,
    invocation_id uuid,
    xact_id text
);

create type jobs_internal.completion_item as (
    invocation_id uuid,
    kind text,
    lifecycle text,
    attempts integer,
    not_before double precision,
    deadline double precision,
    cancel_method text,
    reason text,
    sqlstate text,
    fingerprint text
);

create type jobs_internal.dispatched_task as (
    number bigint,
    kind text,
    slot uuid,
    started boolean,
    run_day date,
    job_execution_id uuid,
    step_id integer,
    ordinal integer,
    attempt integer,
    invocation_id uuid,
    target_execution_id uuid,
    job_id uuid,
    job_version integer,
    run_create_time timestamp with time zone,
    target_type text,
    target_id uuid,
    server_id text,
    server_name text,
    pool_name text,
    database_name text,
    schema_name text,
    credential_id uuid,
    credential_version bigint,
    first_start timestamp with time zone,
    tried_at timestamp with time zone,
    directory bigint,
    script_outcome text,
    overrides jsonb,
    labels jsonb,
    committed_attempt integer
);

create type jobs_internal.task_release as (
    run_day date,
    job_execution_id uuid,
    step_id integer,
    ordinal integer,
    attempt integer,
    invocation_id uuid,
    wait_reason text,
    pause_seconds double precision,
    message text
);

create type jobs_internal.task_result as (
    run_day date,
    job_execution_id uuid,
    step_id integer,
    ordinal integer,
    attempt integer,
    invocation_id uuid,
    lifecycle text,
    phase text,
    retry boolean,
    again boolean,
    reason text,
    sqlstate text,
    message text,
    detail text,
    hint text,
    context text,
    position integer,
    fingerprint text,
    notices jsonb,
    results jsonb,
    result_hash text,
    rows bigint,
    bytes bigint,
    statement_no integer,
    timings jsonb,
    blockers jsonb,
    last_message text,
    cancel_method text,
    checkpoint jsonb,
    rows_affected bigint
);

create type jobs_internal.task_start as (
    run_day date,
    job_execution_id uuid,
    step_id integer,
    ordinal integer,
    attempt integer,
    invocation_id uuid,
    backend_pid integer,
    server_version integer
);

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

create table jobs_internal.chosen_target (
    job_execution_id uuid not null,
    step_id integer not null,
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
    constraint chosen_target_pkey PRIMARY KEY (job_execution_id, step_id, target_id),
    constraint rerun_target_job_execution_id_fkey FOREIGN KEY (job_execution_id) REFERENCES job_execution(job_execution_id) ON DELETE CASCADE
);

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
    items completion_item[] not null,
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

create table jobs_internal.dispatch_lock ();

create table jobs_internal.event (
    number bigint not null,
    event_id uuid not null default gen_random_uuid(),
    kind text not null,
    job_id uuid,
    job_execution_id uuid,
    notifications text[] not null,
    payload jsonb not null,
    created_at timestamp with time zone not null,
    constraint event_pkey PRIMARY KEY (number)
);
CREATE INDEX event_by_run ON jobs_internal.event USING btree (job_execution_id, number) WHERE (job_execution_id IS NOT NULL);

create table jobs_internal.event_counter (
    only_row boolean not null default true,
    last_number bigint not null default 0,
    pruned_number bigint not null default 0,
    constraint event_counter_pkey PRIMARY KEY (only_row),
    constraint there_is_one_event_counter CHECK (only_row)
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
    same_error_limit integer not null default 50,
    run_attempts jsonb not null default '{"enabled": false}'::jsonb,
    auto_disable jsonb,
    constraint a_limit_of_equal_errors_is_not_negative CHECK ((same_error_limit >= 0)),
    constraint a_schema_version_is_positive CHECK ((schema_version > 0)),
    constraint an_engine_has_a_start CHECK (((workload_id IS NULL) = (started_at IS NULL))),
    constraint an_epoch_has_an_engine CHECK (((epoch = 0) = (workload_id IS NULL))),
    constraint an_epoch_is_never_negative CHECK ((epoch >= 0)),
    constraint default_run_attempts_are_an_object CHECK ((jsonb_typeof(run_attempts) = 'object'::text)),
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
    run_attempts jsonb,
    auto_disable jsonb,
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
    constraint only_once_has_no_interval CHECK (((schedule_type = 'Once'::text) = ((schedule_interval_type = 'Once'::text) AND (schedule_cron IS NULL)))),
    constraint run_attempts_are_an_object CHECK ((jsonb_typeof(run_attempts) = 'object'::text))
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
    retries integer not null default 0,
    run_attempts jsonb,
    target_counts jsonb,
    rows_affected bigint,
    constraint a_door_of_a_run_is_known CHECK ((door = ANY (ARRAY['rest'::text, 'fsm'::text, 'psql'::text, 'engine'::text]))),
    constraint a_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForChildJobExecutions'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_run_agrees_with_its_attempts TRIGGER DEFERRABLE INITIALLY DEFERRED,
    constraint a_run_belongs_to_the_day_of_its_creation CHECK ((run_day = ((create_time AT TIME ZONE 'UTC'::text))::date)),
    constraint a_run_ends_after_its_steps TRIGGER DEFERRABLE INITIALLY DEFERRED,
    constraint an_origin_is_known CHECK ((origin = ANY (ARRAY['slot'::text, 'caller'::text, 'rerun'::text, 'plan'::text, 'system'::text]))),
    constraint job_execution_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id),
    constraint job_execution_pkey PRIMARY KEY (job_execution_id),
    constraint only_a_plan_has_a_plan CHECK (((origin = 'plan'::text) = (plan_of IS NOT NULL))),
    constraint only_a_rerun_has_an_origin CHECK (((origin = 'rerun'::text) = (rerun_of IS NOT NULL))),
    constraint only_a_slot_has_a_slot CHECK (((origin = 'slot'::text) = (slot IS NOT NULL))),
    constraint retries_are_counted CHECK ((retries >= 0)),
    constraint rules_of_run_attempts_are_an_object CHECK ((jsonb_typeof(run_attempts) = 'object'::text)),
    constraint target_counts_are_an_object CHECK ((jsonb_typeof(target_counts) = 'object'::text)),
    constraint what_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))))
);
CREATE UNIQUE INDEX a_plan_is_started_once ON jobs_internal.job_execution USING btree (plan_of) WHERE (plan_of IS NOT NULL);
CREATE UNIQUE INDEX a_slot_fires_once ON jobs_internal.job_execution USING btree (job_id, slot) WHERE (slot IS NOT NULL);
CREATE INDEX job_execution_by_job ON jobs_internal.job_execution USING btree (job_id, create_time DESC, job_execution_id DESC);
CREATE INDEX job_execution_by_origin ON jobs_internal.job_execution USING btree (rerun_of) WHERE (rerun_of IS NOT NULL);
CREATE INDEX job_execution_by_time ON jobs_internal.job_execution USING btree (create_time DESC, job_execution_id DESC);
CREATE INDEX job_execution_with_retries ON jobs_internal.job_execution USING btree (job_execution_id) WHERE ((end_time IS NULL) AND (retries > 0));
CREATE INDEX live_job_execution ON jobs_internal.job_execution USING btree (job_id) WHERE (end_time IS NULL);
CREATE CONSTRAINT TRIGGER a_run_agrees_with_its_attempts AFTER UPDATE OF lifecycle ON jobs_internal.job_execution DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.run_attempts IS NOT NULL) AND (old.lifecycle <> new.lifecycle))) EXECUTE FUNCTION check_attempts_of_run();
CREATE CONSTRAINT TRIGGER a_run_ends_after_its_steps AFTER UPDATE OF end_time ON jobs_internal.job_execution DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.end_time IS NULL) AND (new.end_time IS NOT NULL))) EXECUTE FUNCTION end_after_steps();
CREATE TRIGGER a_run_keeps_the_rules_of_its_attempts BEFORE INSERT ON jobs_internal.job_execution FOR EACH ROW WHEN ((new.origin <> 'system'::text)) EXECUTE FUNCTION keep_attempt_rules();
CREATE TRIGGER a_run_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.job_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text) OR ((old.lifecycle = 'Created'::text) AND (new.lifecycle = ANY (ARRAY['WaitingForRetry'::text, 'Succeeded'::text, 'SucceededWithSkipped'::text]))) OR ((old.lifecycle = 'WaitingForRetry'::text) AND (new.lifecycle = ANY (ARRAY['Succeeded'::text, 'SucceededWithSkipped'::text, 'Skipped'::text])))))) EXECUTE FUNCTION refuse_move();
CREATE TRIGGER a_run_writes_events AFTER UPDATE OF lifecycle ON jobs_internal.job_execution FOR EACH ROW WHEN (((old.lifecycle IS DISTINCT FROM new.lifecycle) AND (new.origin <> 'system'::text))) EXECUTE FUNCTION run_changed();

create table jobs_internal.job_health (
    job_id uuid not null,
    failures integer not null,
    since timestamp with time zone not null,
    warned_at timestamp with time zone,
    disabled_at timestamp with time zone,
    constraint a_failing_job_has_failures CHECK ((failures > 0)),
    constraint job_health_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(job_id) ON DELETE CASCADE,
    constraint job_health_pkey PRIMARY KEY (job_id)
);

create table jobs_internal.job_step (
    job_id uuid not null,
    version integer not null,
    step_id integer not null,
    name text not null,
    script_hash bytea not null,
    credential_id uuid,
    credential_name text,
    credential_as_given text,
    target_group_id uuid,
    target_group_name text,
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
    constraint a_group_has_id_and_name CHECK (((target_group_id IS NULL) = (target_group_name IS NULL))),
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

create table jobs_internal.outbox (
    entry bigint not null identity,
    kind text not null,
    job_id uuid,
    job_execution_id uuid,
    notifications text[] not null default '{}'::text[],
    payload jsonb not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    constraint outbox_pkey PRIMARY KEY (entry)
);

create table jobs_internal.plan (
    plan_id uuid not null,
    job_id uuid not null,
    job_version integer not null,
    document jsonb not null,
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    expires_at timestamp with time zone not null default (clock_timestamp() + '72:00:00'::interval),
    constraint plan_job_id_job_version_fkey FOREIGN KEY (job_id, job_version) REFERENCES job_version(job_id, version) ON DELETE CASCADE,
    constraint plan_pkey PRIMARY KEY (plan_id)
);
CREATE INDEX plan_by_expiry ON jobs_internal.plan USING btree (expires_at);
CREATE INDEX plan_by_version ON jobs_internal.plan USING btree (job_id, job_version);

create table jobs_internal.plan_snapshot (
    plan_id uuid not null,
    step_id integer not null,
    snapshot_id uuid not null,
    constraint plan_snapshot_pkey PRIMARY KEY (plan_id, step_id),
    constraint plan_snapshot_plan_id_fkey FOREIGN KEY (plan_id) REFERENCES plan(plan_id) ON DELETE CASCADE,
    constraint plan_snapshot_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES snapshot(snapshot_id)
);
CREATE INDEX plan_snapshot_by_snapshot ON jobs_internal.plan_snapshot USING btree (snapshot_id);

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

create table jobs_internal.report_lock ();

create table jobs_internal.request (
    request_id uuid not null,
    kind text not null,
    args jsonb not null,
    asked_by text not null,
    asked_at timestamp with time zone not null default clock_timestamp(),
    answered_at timestamp with time zone,
    answer jsonb,
    constraint a_request_kind_is_known CHECK ((kind = ANY (ARRAY['resolve'::text, 'why'::text, 'plan'::text, 'doctor'::text, 'login'::text]))),
    constraint an_answer_has_a_time CHECK (((answer IS NULL) = (answered_at IS NULL))),
    constraint request_pkey PRIMARY KEY (request_id)
);
CREATE INDEX request_by_age ON jobs_internal.request USING btree (asked_at);

create table jobs_internal.run_attempt (
    job_execution_id uuid not null,
    number integer not null,
    lifecycle text not null default 'InProgress'::text,
    start_time timestamp with time zone not null default clock_timestamp(),
    end_time timestamp with time zone,
    newly_succeeded integer,
    remaining integer,
    next_start_time timestamp with time zone,
    reached_limit text,
    message text not null default ''::text,
    constraint a_reached_limit_has_no_successor CHECK (((reached_limit IS NULL) OR (next_start_time IS NULL))),
    constraint a_reached_limit_is_known CHECK ((reached_limit = ANY (ARRAY['maxSuccessiveWithoutProgress'::text, 'maxWithoutProgress'::text, 'maxWithProgress'::text]))),
    constraint a_run_attempt_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['InProgress'::text, 'Succeeded'::text, 'Failed'::text]))),
    constraint an_ended_run_attempt_has_an_end CHECK (((end_time IS NULL) = (lifecycle = 'InProgress'::text))),
    constraint an_ended_run_attempt_has_its_counts CHECK (((end_time IS NULL) OR (newly_succeeded IS NOT NULL))),
    constraint only_a_failed_run_attempt_has_a_successor CHECK (((next_start_time IS NULL) OR (lifecycle = 'Failed'::text))),
    constraint run_attempt_job_execution_id_fkey FOREIGN KEY (job_execution_id) REFERENCES job_execution(job_execution_id) ON DELETE CASCADE,
    constraint run_attempt_pkey PRIMARY KEY (job_execution_id, number),
    constraint run_attempts_are_numbered_from_1 CHECK ((number >= 1))
);
CREATE UNIQUE INDEX one_running_run_attempt ON jobs_internal.run_attempt USING btree (job_execution_id) WHERE (end_time IS NULL);
CREATE TRIGGER a_run_attempt_follows_the_one_before BEFORE INSERT ON jobs_internal.run_attempt FOR EACH ROW EXECUTE FUNCTION refuse_attempt();
CREATE TRIGGER a_run_attempt_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.run_attempt FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND (old.end_time IS NOT NULL))) EXECUTE FUNCTION refuse_move();

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
    client_certificate text,
    client_key text,
    client_key_fingerprint text,
    database_labels jsonb not null default '{}'::jsonb,
    constraint a_budget_allows_something CHECK ((max_connections > 0)),
    constraint a_client_certificate_has_its_key CHECK ((num_nonnulls(client_certificate, client_key, client_key_fingerprint) = ANY (ARRAY[0, 3]))),
    constraint a_client_key_is_sealed CHECK ((client_key ~~ 'sealed:%'::text)),
    constraint a_pooling_is_known CHECK ((pooling = ANY (ARRAY['none'::text, 'session'::text, 'transaction'::text]))),
    constraint a_port_is_a_port CHECK (((port >= 1) AND (port <= 65535))),
    constraint a_rate_allows_something CHECK ((connections_per_second > (0)::double precision)),
    constraint a_server_has_a_host CHECK ((cardinality(hosts) > 0)),
    constraint an_ssl_mode_is_known CHECK ((ssl_mode = ANY (ARRAY['verify-full'::text, 'require'::text, 'disable'::text]))),
    constraint database_labels_are_an_object CHECK ((jsonb_typeof(database_labels) = 'object'::text)),
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
CREATE TRIGGER slots_write_events AFTER INSERT ON jobs_internal.slot REFERENCING NEW TABLE AS new_slots FOR EACH STATEMENT EXECUTE FUNCTION slots_decided();

create table jobs_internal.snapshot (
    snapshot_id uuid not null,
    target_group_id uuid not null,
    group_hash bytea not null,
    directory_revision bigint not null,
    targets integer not null,
    targets_hash bytea not null,
    left_out jsonb not null default '[]'::jsonb,
    made_at timestamp with time zone not null default clock_timestamp(),
    groups jsonb,
    joined jsonb not null default '[]'::jsonb,
    constraint joined_is_a_list CHECK ((jsonb_typeof(joined) = 'array'::text)),
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
CREATE INDEX snapshot_target_by_database ON jobs_internal.snapshot_target USING btree (server_name, database_name);

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
    halt_rule text,
    approved_wave integer not null default 1,
    not_before timestamp with time zone,
    resumed_at timestamp with time zone,
    aborted_at timestamp with time zone,
    rows_affected bigint,
    constraint a_halt_has_a_rule CHECK (((halted_at IS NULL) = (halt_rule IS NULL))),
    constraint a_halt_rule_is_known CHECK ((halt_rule = ANY (ARRAY['FailureLimit'::text, 'SameError'::text]))),
    constraint a_step_ends_after_its_targets TRIGGER DEFERRABLE INITIALLY DEFERRED,
    constraint a_step_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForChildJobExecutions'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_step_that_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'SucceededWithSkipped'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text])))),
    constraint a_wave_is_one_of_the_waves CHECK (((wave >= 1) AND (wave <= waves))),
    constraint step_execution_pkey PRIMARY KEY (run_day, job_execution_id, step_id)
);
CREATE INDEX step_execution_by_operator ON ONLY jobs_internal.step_execution USING btree (job_execution_id) WHERE ((end_time IS NULL) AND (COALESCE(aborted_at, resumed_at) IS NOT NULL));
CREATE INDEX step_execution_by_snapshot ON ONLY jobs_internal.step_execution USING btree (snapshot_id);
CREATE TRIGGER a_new_step_writes_an_event AFTER INSERT ON jobs_internal.step_execution FOR EACH ROW EXECUTE FUNCTION step_changed();
CREATE TRIGGER a_step_belongs_to_a_live_run BEFORE INSERT ON jobs_internal.step_execution FOR EACH ROW EXECUTE FUNCTION refuse_orphan();
CREATE CONSTRAINT TRIGGER a_step_ends_after_its_targets AFTER UPDATE OF end_time ON jobs_internal.step_execution DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.end_time IS NULL) AND (new.end_time IS NOT NULL))) EXECUTE FUNCTION end_after_targets();
CREATE TRIGGER a_step_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.step_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND ((old.end_time IS NOT NULL) OR (new.lifecycle = 'Created'::text)))) EXECUTE FUNCTION refuse_move();
CREATE TRIGGER a_step_writes_events AFTER UPDATE OF wave, halted_at, end_time ON jobs_internal.step_execution FOR EACH ROW WHEN ((((old.wave IS DISTINCT FROM new.wave) OR (old.halted_at IS DISTINCT FROM new.halted_at)) OR (old.end_time IS DISTINCT FROM new.end_time))) EXECUTE FUNCTION step_changed();

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
    repeatable boolean not null default false,
    rows_affected bigint,
    constraint a_phase_is_known CHECK ((phase = ANY (ARRAY['connect'::text, 'run'::text, 'commit'::text, 'verify'::text, 'output'::text]))),
    constraint a_target_lifecycle_is_known CHECK ((lifecycle = ANY (ARRAY['Created'::text, 'InProgress'::text, 'WaitingForRetry'::text, 'Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text]))),
    constraint a_target_that_is_over_has_an_end CHECK (((end_time IS NOT NULL) = (lifecycle = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'TimedOut'::text, 'Canceled'::text, 'Skipped'::text])))),
    constraint attempts_never_vanish CHECK ((attempts >= 0)),
    constraint target_execution_pkey PRIMARY KEY (run_day, job_execution_id, step_id, ordinal)
);
CREATE TRIGGER a_target_moves_legally BEFORE UPDATE OF lifecycle ON jobs_internal.target_execution FOR EACH ROW WHEN (((old.lifecycle <> new.lifecycle) AND
        CASE
            WHEN (new.lifecycle = 'Created'::text) THEN ((old.end_time IS NULL) OR (old.lifecycle = 'Succeeded'::text) OR (new.free_attempts <> new.attempts) OR (COALESCE(new.start_time, new.tried_at) IS NOT NULL))
            ELSE ((old.end_time IS NOT NULL) OR ((((old.lifecycle = 'Created'::text) AND (new.lifecycle = 'WaitingForRetry'::text)) OR ((old.lifecycle = 'WaitingForRetry'::text) AND (new.lifecycle = 'Succeeded'::text))) OR ((old.lifecycle = 'Created'::text) AND (new.lifecycle = 'Succeeded'::text))))
        END)) EXECUTE FUNCTION refuse_move();

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
    server_id text,
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
    labels text,
    constraint a_database_is_named CHECK (((target_type <> ALL (ARRAY['SqlDatabase'::text, 'SqlQuery'::text, 'SqlShardMap'::text])) OR (database_name IS NOT NULL))),
    constraint a_membership_is_known CHECK ((membership_type = ANY (ARRAY['Include'::text, 'Exclude'::text]))),
    constraint a_nested_group_is_named CHECK (((target_type = 'TargetGroup'::text) = (nested_group_id IS NOT NULL))),
    constraint a_pool_is_named CHECK (((target_type = 'SqlElasticPool'::text) = (elastic_pool_name IS NOT NULL))),
    constraint a_query_is_given CHECK (((target_type = 'SqlQuery'::text) = (query IS NOT NULL))),
    constraint a_schema_has_a_pattern CHECK (((target_type = 'SqlSchema'::text) = (schema_pattern IS NOT NULL))),
    constraint a_server_name_stands_for_one_server CHECK (((server_name IS NULL) = (server_id IS NULL))),
    constraint a_shard_map_is_named CHECK (((target_type = 'SqlShardMap'::text) = (shard_map_name IS NOT NULL))),
    constraint a_target_names_its_server CHECK (((target_type = 'TargetGroup'::text) = (server_name IS NULL))),
    constraint a_target_type_is_known CHECK ((target_type = ANY (ARRAY['SqlServer'::text, 'SqlElasticPool'::text, 'SqlDatabase'::text, 'SqlShardMap'::text, 'SqlSchema'::text, 'SqlQuery'::text, 'TargetGroup'::text]))),
    constraint labels_have_a_length CHECK (((octet_length(labels) >= 1) AND (octet_length(labels) <= 2048))),
    constraint labels_select_among_databases CHECK (((labels IS NULL) OR (target_type = ANY (ARRAY['SqlServer'::text, 'SqlDatabase'::text])))),
    constraint positions_are_taken_once UNIQUE (target_group_id, "position"),
    constraint target_group_member_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(credential_id),
    constraint target_group_member_nested_group_id_fkey FOREIGN KEY (nested_group_id) REFERENCES target_group(target_group_id),
    constraint target_group_member_pkey PRIMARY KEY (target_group_id, target_id),
    constraint target_group_member_refresh_credential_id_fkey FOREIGN KEY (refresh_credential_id) REFERENCES credential(credential_id),
    constraint target_group_member_target_group_id_fkey FOREIGN KEY (target_group_id) REFERENCES target_group(target_group_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX a_member_stands_once ON jobs_internal.target_group_member USING btree (target_group_id, membership_type, target_type, COALESCE(lower(server_name), ''::text), COALESCE(database_name, ''::text), COALESCE(lower(elastic_pool_name), ''::text), COALESCE(shard_map_name, ''::text), COALESCE(schema_pattern, ''::text), md5(COALESCE(query, ''::text)), COALESCE(nested_group_id, '00000000-0000-0000-0000-000000000000'::uuid), md5(COALESCE(labels, ''::text)));
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

create table jobs_internal.webhook (
    webhook_id uuid not null default gen_random_uuid(),
    name text not null,
    url text not null,
    secret text not null,
    events text[] not null,
    jobs text[] not null default '{}'::text[],
    enabled boolean not null default true,
    max_attempts integer not null default 8,
    row_version bigint not null default nextval('row_version'::regclass),
    created_by text not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    modified_by text not null,
    modified_at timestamp with time zone not null default clock_timestamp(),
    constraint a_webhook_event_is_known CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['failed'::text, 'succeeded'::text, 'recovered'::text, 'late'::text, 'missed'::text, 'halted'::text, 'autoDisableWarning'::text, 'autoDisabled'::text]))),
    constraint a_webhook_secret_is_sealed CHECK ((secret ~~ 'sealed:%'::text)),
    constraint webhook_attempts_are_limited CHECK (((max_attempts >= 1) AND (max_attempts <= 20))),
    constraint webhook_pkey PRIMARY KEY (webhook_id)
);
CREATE UNIQUE INDEX a_webhook_name_is_taken_once ON jobs_internal.webhook USING btree (lower(name));

create table jobs_internal.webhook_delivery (
    webhook_id uuid not null,
    number bigint not null,
    status text not null default 'Pending'::text,
    attempts integer not null default 0,
    not_before timestamp with time zone not null default clock_timestamp(),
    last_attempt_at timestamp with time zone,
    last_status_code integer,
    last_error text,
    constraint a_delivery_status_is_known CHECK ((status = ANY (ARRAY['Pending'::text, 'Delivered'::text, 'Failed'::text]))),
    constraint webhook_delivery_number_fkey FOREIGN KEY (number) REFERENCES event(number) ON DELETE CASCADE,
    constraint webhook_delivery_pkey PRIMARY KEY (webhook_id, number),
    constraint webhook_delivery_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhook(webhook_id) ON DELETE CASCADE
);
CREATE INDEX pending_delivery ON jobs_internal.webhook_delivery USING btree (webhook_id, not_before) WHERE (status = 'Pending'::text);
CREATE INDEX webhook_delivery_by_event ON jobs_internal.webhook_delivery USING btree (number);

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
    modified_at,
    run_attempts,
    auto_disable,
    COALESCE(( SELECT h.failures
           FROM job_health h
          WHERE (h.job_id = j.job_id)), 0) AS failures_in_a_row,
    ( SELECT h.disabled_at
           FROM job_health h
          WHERE (h.job_id = j.job_id)) AS auto_disabled_at
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

create view jobs.run_attempts as
SELECT a.job_execution_id,
    j.name AS job_name,
    x.job_id,
    a.number AS attempt,
    a.lifecycle,
    a.start_time,
    a.end_time,
    a.newly_succeeded,
    a.remaining,
    a.next_start_time AS next_attempt_start_time,
    a.reached_limit,
    a.message
   FROM ((run_attempt a
     JOIN job_execution x ON ((x.job_execution_id = a.job_execution_id)))
     JOIN job j ON ((j.job_id = x.job_id)))
  WHERE (j.deleted_at IS NULL);

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
    m."position",
    m.labels
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
    x.attempt AS current_attempts,
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
