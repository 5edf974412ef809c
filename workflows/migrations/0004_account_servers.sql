-- expand: which servers an account may use as targets; its directory follows them at once
create table account_server (
    account_uid uuid not null references resource (uid) on delete cascade,
    server_uid  uuid not null references resource (uid) on delete cascade,
    added_by    text not null,
    added_at    timestamptz not null default clock_timestamp(),
    primary key (account_uid, server_uid)
);
create index account_server_by_server on account_server (server_uid);

create function tell_directories() returns trigger language plpgsql as $$
begin
    perform pg_notify('muster_directory', '');
    return null;
end $$;
create trigger directories_follow_new_servers after insert on resource for each row
    when (new.type in ('Microsoft.Sql/servers', 'Microsoft.Sql/servers/elasticPools'))
    execute function tell_directories();
create trigger directories_follow_lost_servers after delete on resource for each row
    when (old.type in ('Microsoft.Sql/servers', 'Microsoft.Sql/servers/elasticPools'))
    execute function tell_directories();
create trigger directories_follow_servers after update of properties, observed on resource for each row
    when (new.type in ('Microsoft.Sql/servers', 'Microsoft.Sql/servers/elasticPools')
          and (old.properties, old.observed) is distinct from (new.properties, new.observed))
    execute function tell_directories();
create trigger directories_follow_allowed_servers after insert or delete on account_server for each statement
    execute function tell_directories();
