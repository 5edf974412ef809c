-- expand: which servers an account may use as targets; until now every server of its subscription
create table account_server (
    account_uid uuid not null references resource (uid) on delete cascade,
    server_uid  uuid not null references resource (uid) on delete cascade,
    added_by    text not null,
    added_at    timestamptz not null default clock_timestamp(),
    primary key (account_uid, server_uid)
);
create index account_server_by_server on account_server (server_uid);
-- Jobs of existing accounts keep the servers that they could name. The rows say where they come from.
insert into account_server (account_uid, server_uid, added_by)
select a.uid, s.uid, 'upgrade'
  from resource a
  join resource s on s.subscription_key = a.subscription_key and s.tenant_id = a.tenant_id
                 and s.type = 'Microsoft.Sql/servers'
 where a.type = 'Microsoft.Sql/servers/jobAgents';
create trigger directories_follow_allowed_servers after insert or delete on account_server for each statement
    execute function tell_directories();
