-- name: set_observed
-- Merges into what is shown, with the next version.
update resource set observed = observed || $2, row_version = row_version + 1 where uid = $1;

-- name: live_launchers
-- How many launchers of a group said that they live in that time.
select count(*) from launcher where launch_group = $1 and heartbeat_at > clock_timestamp() - $2::interval;

-- name: live_agents
-- How many node agents stand beside a server and said that they live in that time.
select count(*) from node_agents
 where (servers is null or $1 = any(servers)) and heartbeat_at > clock_timestamp() - $2::interval;

-- name: reach_account
-- An account with its server, its database and what its machine made: one row each, as far as they are there.
select case r.key when a.key then 'account' when a.parent_key then 'server' else 'database' end as role,
       r.*,
       m.scratch
  from resource a
  join resource r on r.tenant_id = a.tenant_id
                 and r.key in (a.key, a.parent_key, lower(a.properties ->> 'databaseId'))
  left join machine m on m.uid = a.uid and r.uid = a.uid
 where a.key = $1 and a.tenant_id = $2 and a.type = 'Microsoft.Sql/servers/jobAgents';

-- name: accounts_elsewhere
-- Job accounts of a subscription that do not lie below a scope.
select id from resource
 where type = 'Microsoft.Sql/servers/jobAgents'
   and subscription_key = $1
   and tenant_id = $2
   and not starts_with(key, $3 || '/')
 order by key;

-- name: servers_below
-- Servers anywhere below a scope.
select id from resource
 where type = 'Microsoft.Sql/servers' and subscription_key = $1 and tenant_id = $2 and starts_with(key, $3 || '/')
 order by key;

-- name: servers_called
-- Servers of a subscription that go by one of these names, as the directory finds them.
select r.id, n.name
  from unnest($3::text[]) as n (name)
  join resource r on r.tenant_id = $2 and r.subscription_key = $1 and r.type = 'Microsoft.Sql/servers'
 cross join lateral (select coalesce(r.properties -> 'endpoint', '{}') || coalesce(r.observed -> 'endpoint', '{}')) e (endpoint)
 where lower(n.name) in (lower(r.name), lower(r.name) || '.database.windows.net', lower(e.endpoint ->> 'host'))
    or lower(n.name) in (select lower(h) from jsonb_array_elements_text(coalesce(e.endpoint -> 'hosts', '[]')) h);

-- name: server_names
-- What can be called, for a hint.
select name from resource
 where subscription_key = $1 and tenant_id = $2 and type = 'Microsoft.Sql/servers'
 order by name
 limit 1000;

-- name: server_anywhere
-- The server of that name in whatever subscription of the tenant it is, or none.
select id from resource where type = 'Microsoft.Sql/servers' and lower(name) = lower($1) and tenant_id = $2;
