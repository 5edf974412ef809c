-- expand: a change of a server or pool is heard, so that the directories of the accounts follow at once
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
