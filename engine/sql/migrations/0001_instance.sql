-- expand: whose control database this is, which engine may write to it, and which hosts it has
create table jobs_internal.instance (
    singleton          boolean primary key default true,
    account_uid        uuid not null,
    identity           uuid not null,
    epoch              bigint not null default 0,
    generation         bigint not null default 0,
    workload_id        uuid,
    host_name          text,
    version            text,
    started_at         timestamptz,
    heartbeat_at       timestamptz,
    paused             boolean not null default false,
    draining           boolean not null default false,
    min_engine_version text not null,
    schema_version     integer not null,
    installed_at       timestamptz not null default clock_timestamp(),
    released_at        timestamptz,
    constraint there_is_one_instance check (singleton),
    constraint the_epoch_is_a_key unique (epoch),
    constraint an_epoch_is_never_negative check (epoch >= 0),
    constraint an_epoch_has_an_engine check ((epoch = 0) = (workload_id is null)),
    constraint an_engine_has_a_start check ((workload_id is null) = (started_at is null)),
    constraint a_schema_version_is_positive check (schema_version > 0)
);
comment on table jobs_internal.instance is
    'The one row that says whose control database this is and which engine may write to it.';
comment on column jobs_internal.instance.singleton is 'Always true: there is one row.';
comment on column jobs_internal.instance.account_uid is 'The job account, or the last one when released.';
comment on column jobs_internal.instance.identity is 'Written at install; a clone is told by it.';
comment on column jobs_internal.instance.epoch is
    'Fencing token of the engine in charge. Changing it locks the table, which waits for every writer that holds it in '
    'row share mode, while a heartbeat waits for nobody.';
comment on column jobs_internal.instance.generation is 'How many engines were in charge so far.';
comment on column jobs_internal.instance.workload_id is 'The engine''s workload.';
comment on column jobs_internal.instance.host_name is 'The machine on which the engine runs.';
comment on column jobs_internal.instance.version is 'The version of the engine.';
comment on column jobs_internal.instance.started_at is 'When the engine took charge.';
comment on column jobs_internal.instance.heartbeat_at is 'When the engine last said that it lives.';
comment on column jobs_internal.instance.paused is 'Nothing new starts.';
comment on column jobs_internal.instance.draining is 'The account is going: nothing new starts, what runs ends.';
comment on column jobs_internal.instance.min_engine_version is 'An older engine is refused.';
comment on column jobs_internal.instance.schema_version is 'Number of the newest migration.';
comment on column jobs_internal.instance.installed_at is 'When the account took the database.';
comment on column jobs_internal.instance.released_at is 'Set when the account went and the schema stayed.';

create function jobs_internal.hold_instance() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    lock table instance in exclusive mode;
    return null;
end $$;
comment on function jobs_internal.hold_instance() is
    'Waits for every transaction behind a fence, of this or an older release, and lets none of them begin.';
-- Before any row is locked: a heartbeat that waited for the row would be waited for in turn.
create trigger an_epoch_changes_alone before update of epoch on jobs_internal.instance
    for each statement execute function jobs_internal.hold_instance();

create table jobs_internal.host (
    host_id       uuid primary key,
    epoch         bigint not null,
    adopted_epoch bigint not null,
    host_name     text not null,
    pid           integer not null,
    slots         integer not null,
    running       integer not null default 0,
    state         text not null default 'live',
    registered_at timestamptz not null default clock_timestamp(),
    heartbeat_at  timestamptz not null default clock_timestamp(),
    ended_at      timestamptz,
    constraint a_host_state_is_known check (state in ('live', 'draining', 'gone')),
    constraint only_a_gone_host_has_an_end check ((state = 'gone') = (ended_at is not null)),
    constraint an_adoption_never_goes_back check (adopted_epoch >= epoch),
    constraint a_host_has_slots check (slots > 0),
    constraint a_host_runs_no_less_than_nothing check (running >= 0)
);
create index host_by_state on jobs_internal.host (state) where state <> 'gone';
comment on table jobs_internal.host is 'The processes that run tasks; they outlive the engine that started them.';
comment on column jobs_internal.host.host_id is 'Its workload.';
comment on column jobs_internal.host.epoch is 'Under which it registered.';
comment on column jobs_internal.host.adopted_epoch is 'The newest epoch that took it over: the one it writes with.';
comment on column jobs_internal.host.host_name is 'The machine on which it runs.';
comment on column jobs_internal.host.pid is 'Its process on that machine.';
comment on column jobs_internal.host.slots is 'How many tasks it runs at once.';
comment on column jobs_internal.host.running is 'How many tasks it ran at its last heartbeat.';
comment on column jobs_internal.host.state is 'live, draining or gone.';
comment on column jobs_internal.host.registered_at is 'When it came.';
comment on column jobs_internal.host.heartbeat_at is 'When it last said that it lives.';
comment on column jobs_internal.host.ended_at is 'When it went.';

create table jobs_internal.account_key (
    public_key text primary key,
    added_at   timestamptz not null default clock_timestamp(),
    retired_at timestamptz,
    constraint a_public_key_has_32_bytes check (octet_length(decode(public_key, 'base64')) = 32)
);
create unique index one_key_is_current on jobs_internal.account_key ((true)) where retired_at is null;
comment on table jobs_internal.account_key is
    'Public halves of the account''s X25519 pairs: what secrets are sealed for. The private half is never here.';
comment on column jobs_internal.account_key.public_key is 'Base64 of 32 bytes.';
comment on column jobs_internal.account_key.added_at is 'When it came.';
comment on column jobs_internal.account_key.retired_at is 'Nothing new is sealed for it since then.';

comment on table jobs_internal.migration is
    'The ledger: which files were applied, migrations once, functions and views whenever they changed.';
comment on column jobs_internal.migration.name is 'The file.';
comment on column jobs_internal.migration.digest is 'Of its text.';
comment on column jobs_internal.migration.applied_at is 'When, last.';
