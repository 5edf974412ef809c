-- expand: what was done once is answered again, who did it is kept, and what was installed is known
create table jobs_internal.command_journal (
    command_id  uuid primary key,
    command     text not null,
    args_digest text not null,
    caller      text not null,
    door        text not null,
    result      jsonb,
    at          timestamptz not null default clock_timestamp(),
    constraint a_door_is_known check (door in ('rest', 'fsm'))
);
create index journal_by_age on jobs_internal.command_journal (at);
comment on table jobs_internal.command_journal is
    'Commands that took effect, written in the transaction of the effect: a repeat gets the first result.';
comment on column jobs_internal.command_journal.command_id is 'Given by the caller, the same at each repeat.';
comment on column jobs_internal.command_journal.command is 'Its name in the catalogue.';
comment on column jobs_internal.command_journal.args_digest is 'Of its arguments, without the secrets.';
comment on column jobs_internal.command_journal.caller is 'Who asked.';
comment on column jobs_internal.command_journal.door is 'By which way: rest or fsm.';
comment on column jobs_internal.command_journal.result is 'What was answered; null only inside the transaction.';
comment on column jobs_internal.command_journal.at is 'When.';

create table jobs_internal.audit (
    audit_id     bigint generated always as identity primary key,
    at           timestamptz not null default clock_timestamp(),
    action       text not null,
    caller       text not null,
    login        text not null,
    door         text not null,
    command_id   uuid,
    detail       jsonb not null default '{}',
    constraint an_audit_door_is_known check (door in ('rest', 'fsm', 'psql'))
);
create index audit_by_age on jobs_internal.audit (at);
create index audit_by_command on jobs_internal.audit (command_id) where command_id is not null;
comment on table jobs_internal.audit is 'Every change, with who asked for it and by which door.';
comment on column jobs_internal.audit.audit_id is 'In the order of writing.';
comment on column jobs_internal.audit.at is 'When.';
comment on column jobs_internal.audit.action is 'The command or the function.';
comment on column jobs_internal.audit.caller is 'Who asked: a principal of the control plane, or the login itself.';
comment on column jobs_internal.audit.login is 'The session_user.';
comment on column jobs_internal.audit.door is 'By which way: rest, fsm or psql.';
comment on column jobs_internal.audit.command_id is 'In the journal.';
comment on column jobs_internal.audit.detail is 'What it was about; never a secret.';

create table jobs_internal.schema_object (
    kind         text not null,
    name         text not null,
    fingerprint  text not null,
    server_major integer not null,
    primary key (kind, name)
);
comment on table jobs_internal.schema_object is
    'What the last install or upgrade left behind, so that a later change by hand is seen.';
comment on column jobs_internal.schema_object.kind is 'table, column, constraint, index, function, view or schema.';
comment on column jobs_internal.schema_object.name is 'Qualified.';
comment on column jobs_internal.schema_object.fingerprint is 'Of its definition as the server prints it.';
comment on column jobs_internal.schema_object.server_major is 'Another major prints some definitions differently.';
