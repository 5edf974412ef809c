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

create table jobs_internal.directory_revision (
    singleton boolean not null default true,
    revision bigint not null,
    synced_at timestamp with time zone not null default clock_timestamp(),
    constraint directory_revision_pkey PRIMARY KEY (singleton),
    constraint there_is_one_revision CHECK (singleton)
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

create table jobs_internal.migration (
    name text not null,
    digest text not null,
    applied_at timestamp with time zone not null default clock_timestamp(),
    constraint migration_pkey PRIMARY KEY (name)
);

create table jobs_internal.schema_object (
    kind text not null,
    name text not null,
    fingerprint text not null,
    server_major integer not null,
    constraint schema_object_pkey PRIMARY KEY (kind, name)
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
    constraint a_budget_allows_something CHECK ((max_connections > 0)),
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

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.adopt_hosts_v1(p_epoch bigint)
 RETURNS TABLE(host_id uuid, epoch bigint, host_name text, pid integer, slots integer, state text, heartbeat_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.begin_command_v1(p_id uuid, p_command text, p_digest text, p_caller text, p_door text, OUT known boolean, OUT result jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.describe_v1()
 RETURNS TABLE(kind text, name text, definition text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.end_command_v1(p_id uuid, p_result jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.end_host_v1(p_host uuid)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.fence_v1(p_epoch bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.heartbeat_v1(p_epoch bigint, OUT paused boolean, OUT draining boolean, OUT schema_version integer, OUT directory_revision bigint)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.host_heartbeat_v1(p_host uuid, p_running integer, OUT adopted_epoch bigint, OUT current_epoch bigint, OUT paused boolean, OUT draining boolean, OUT state text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.install_epoch_v1(p_epoch bigint, p_workload uuid, p_host text, p_version text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp'
 SET lock_timeout TO '2s';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.read_epoch_v1()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: engine
CREATE OR REPLACE FUNCTION jobs_internal.register_host_v1(p_host uuid, p_epoch bigint, p_name text, p_pid integer, p_slots integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: owner
CREATE OR REPLACE FUNCTION jobs_internal.remember_schema_v1()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.set_draining_v1(p_draining boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.set_paused_v1(p_paused boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.sync_directory_v1(p_revision bigint, p_servers jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';

-- for: agent
CREATE OR REPLACE FUNCTION jobs_internal.verify_v1()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'jobs', 'jobs_internal', 'pg_temp';
