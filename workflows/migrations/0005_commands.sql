-- expand: a write below an account is begun here and takes effect in a control database
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

alter table audit_event drop constraint known_audit_status;
alter table audit_event add constraint known_audit_status
    check (status in ('Accepted', 'Started', 'Succeeded', 'Failed', 'Denied'));
create index audit_of_command on audit_event (operation_id) where status = 'Started';
