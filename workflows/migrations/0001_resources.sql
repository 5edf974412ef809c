-- expand: every ARM resource is one row; operations, machines and deduplication stand beside it
create table resource (
    uid               uuid primary key default gen_random_uuid(),
    key               text collate "C" not null,   -- the id in lower case: what is compared
    id                text not null,               -- canonical fixed segments, names as last given
    type              text not null,
    name              text not null,
    parent_key        text collate "C",                  -- containment: group of a server, server of a database
    subscription_key  text,                        -- lower(subscription id); null at tenant scope
    group_key         text,                        -- key of the resource group
    tenant_id         text not null,
    location          text,
    tags              jsonb not null default '{}',
    sku               jsonb,
    identity          jsonb,
    kind              text,
    properties        jsonb not null default '{}', -- what the customer asked for
    observed          jsonb not null default '{}', -- what we found or made: read-only properties
    sealed            jsonb not null default '{}', -- field name -> sealed secret or digest; never leaves
    provisioning_state text not null default 'Succeeded',
    created_at        timestamptz not null default clock_timestamp(),
    created_by        text not null,
    created_by_type   text not null,
    modified_at       timestamptz not null default clock_timestamp(),
    modified_by       text not null,
    modified_by_type  text not null,
    row_version       bigint not null default 1,
    constraint a_key_is_in_lower_case check (key = lower(key collate "C")),
    constraint a_resource_exists_once unique (key, tenant_id),
    constraint a_child_has_a_parent foreign key (parent_key, tenant_id) references resource (key, tenant_id),
    constraint known_provisioning_state
        check (provisioning_state in ('Creating', 'Updating', 'Deleting', 'Succeeded', 'Failed', 'Canceled'))
);
create index resource_by_parent on resource (parent_key, type, key);
create index resource_by_subscription on resource (subscription_key, type, key);
create index resource_by_type on resource (type, key) where subscription_key is null or type = 'Microsoft.Resources/subscriptions';
create unique index a_subscription_belongs_to_one_tenant on resource (key)
    where type = 'Microsoft.Resources/subscriptions';
create unique index a_server_name_is_taken_once on resource (lower(name)) where type = 'Microsoft.Sql/servers';
create index role_assignment_by_principal on resource ((properties ->> 'principalId'))
    where type = 'Microsoft.Authorization/roleAssignments';
create unique index one_assignment_of_a_role
    on resource ((properties ->> 'principalId'), (properties ->> 'principalType' = 'Group'),
                 (properties ->> 'roleDefinitionKey'), (properties ->> 'scopeKey'))
    where type = 'Microsoft.Authorization/roleAssignments';
create index lock_by_scope on resource ((properties ->> 'scopeKey'))
    where type = 'Microsoft.Authorization/locks';
create unique index service_token_by_digest on resource ((sealed ->> 'digest'))
    where type = 'Microsoft.Authorization/serviceTokens';
create unique index one_account_per_control_database on resource (lower(properties ->> 'databaseId'))
    where type = 'Microsoft.Sql/servers/jobAgents';

create table operation (
    operation_id     uuid primary key default gen_random_uuid(),
    tenant_id        text not null,
    subscription_key text not null,
    location         text not null,
    resource_uid     uuid not null,
    resource_id      text not null,
    verb             text not null,
    status           text not null default 'InProgress',
    caller           text not null,
    correlation_id   text,
    created_at       timestamptz not null default clock_timestamp(),
    ended_at         timestamptz,
    error            jsonb,                         -- {code, message, target?, details?}
    constraint known_verb check (verb in ('put', 'patch', 'delete', 'post')),
    constraint known_status check (status in ('InProgress', 'Succeeded', 'Failed', 'Canceled')),
    constraint an_end_has_a_time check ((status = 'InProgress') = (ended_at is null)),
    constraint a_bad_end_has_an_error check ((status in ('Failed', 'Canceled')) = (error is not null))
);
create unique index one_running_operation_per_resource on operation (resource_uid) where ended_at is null;
create index operation_by_resource on operation (resource_uid, created_at);

create table machine (
    uid              uuid primary key,              -- the uid of its resource
    lifecycle        text not null,
    resource_id      text not null,
    state            text not null,
    state_entered_at timestamptz not null default clock_timestamp(),
    deadline_at      timestamptz,                   -- when the state gives up; null where it may wait for ever
    due_at           timestamptz,                   -- when a runner should look; null = rests until a signal
    attempt          integer not null default 0,    -- tries of the current state
    command_id       uuid,                          -- the recorded intent of the current try
    waiting_for      text,                          -- why the last try said wait
    last_error       jsonb,
    operation_id     uuid references operation,     -- what the current work answers to
    scratch          jsonb not null default '{}',   -- names stored before the things are made
    version          bigint not null default 1,     -- compare-and-set of every move
    lease_owner      text,
    lease_until      timestamptz,
    ended_at         timestamptz,
    constraint an_owner_has_a_lease check ((lease_owner is null) = (lease_until is null)),
    constraint what_has_ended_is_not_due check (ended_at is null or due_at is null)
);
create index machine_due on machine (due_at) where due_at is not null;

create table signal (
    signal_id    bigint generated always as identity primary key,
    machine_uid  uuid not null references machine,
    name         text not null,
    operation_id uuid references operation,
    payload      jsonb not null default '{}',
    created_at   timestamptz not null default clock_timestamp(),
    taken_at     timestamptz
);
create index signal_waiting on signal (machine_uid, signal_id) where taken_at is null;

create table history (
    machine_uid  uuid not null references machine,
    seq          integer not null,
    from_state   text,                              -- null: the birth
    to_state     text not null,
    reason       text not null,
    operation_id uuid,
    runner       text not null,
    at           timestamptz not null default clock_timestamp(),
    primary key (machine_uid, seq),
    constraint only_the_birth_comes_from_nowhere check ((seq = 1) = (from_state is null))
);

create table answer (                               -- what a repeated request is answered with
    caller      text not null,
    request_key text not null,                      -- method, canonical path and the client's key
    body_digest bytea not null,
    outcome     jsonb not null,
    created_at  timestamptz not null default clock_timestamp(),
    primary key (caller, request_key)
);
create index answer_by_age on answer (created_at);

create table command (
    command_id  uuid primary key,                   -- the same at each repeat: what the journal there knows it by
    account_uid uuid not null,
    request_key text,                               -- caller, method, path and the client's key; null = none given
    body_digest bytea not null,
    status      text not null default 'Started',
    begun_at    timestamptz not null default clock_timestamp(),
    constraint known_command_status check (status in ('Started', 'Succeeded', 'Failed'))
);
create unique index a_key_belongs_to_one_command on command (request_key) where request_key is not null;
create index command_open on command (begun_at) where status = 'Started';
create index command_by_age on command (begun_at);
