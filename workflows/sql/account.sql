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
-- A JSON array of the servers of a subscription that go by one of these names (a JSON array too), as the directory
-- finds them; with an account, those that it may use. own_name: by its own name, which wins over the host name of
-- another one.
with server as (
    select r.uid, r.id, lower(r.name) as name,
           coalesce(r.properties -> 'endpoint', '{}') || coalesce(r.observed -> 'endpoint', '{}') as endpoint
      from resource r
     where r.tenant_id = $2
       and r.subscription_key = $1
       and r.type = 'Microsoft.Sql/servers'
       and ($4::uuid is null
            or exists (select from account_server a where a.account_uid = $4 and a.server_uid = r.uid))
), called (uid, id, name, own_name) as (  -- joined by equality: thousands of names meet thousands of servers
    select s.uid, s.id, s.name, true from server s
    union all
    select s.uid, s.id, s.name || '.database.windows.net', true from server s
    union all
    select s.uid, s.id, lower(s.endpoint ->> 'host'), false from server s
    union all
    select s.uid, s.id, lower(h), false
      from server s, jsonb_array_elements_text(coalesce(s.endpoint -> 'hosts', '[]')) h
)
, server_of_name as (
    select c.uid, c.id, n.name, bool_or(c.own_name) as own_name
      from jsonb_array_elements_text($3::text::jsonb) as n (name)
      join called c on c.name = lower(n.name)
     group by c.uid, c.id, n.name
)
select coalesce(json_agg(s), '[]')::text from server_of_name s;

-- name: server_names
-- What can be called, for a hint: servers of a subscription that lie in one of the scopes.
select r.name
  from resource r
 where r.subscription_key = $1
   and r.tenant_id = $2
   and r.type = 'Microsoft.Sql/servers'
   and exists (select from unnest($3::text[]) as seen (scope)
                where scope = '/' or r.key = scope or starts_with(r.key, scope || '/'))
 order by r.name
 limit 1000;

-- name: allowed_servers
-- A page of the servers that an account may use as targets, as far as they lie in one of the scopes.
select s.name, s.id, s.key, s.uid, a.added_by, a.added_at
  from account_server a
  join resource s on s.uid = a.server_uid
 where a.account_uid = $1
   and s.key > $2
   and exists (select from unnest($4::text[]) as seen (scope)
                where scope = '/' or s.key = scope or starts_with(s.key, scope || '/'))
 order by s.key
 limit $3;

-- name: allowed_server
-- The server of this name that an account may use as a target, or none: names of servers are unique.
select s.uid, s.id
  from account_server a
  join resource s on s.uid = a.server_uid
 where a.account_uid = $1
   and lower(s.name) = lower($2);

-- name: servers_by_uid
-- The servers with these uids, and whether an account may use each as a target.
select s.id, s.name, exists (select from account_server a where a.account_uid = $1 and a.server_uid = s.uid) as allowed
  from resource s
 where s.uid = any($2::uuid[])
 order by s.key;

-- name: named_servers
-- A JSON array of all servers that an account may use as targets, by their own names.
select coalesce(json_agg(json_build_object('uid', s.uid, 'id', s.id, 'name', s.name, 'own_name', true)), '[]')::text
  from account_server a
  join resource s on s.uid = a.server_uid
 where a.account_uid = $1;

-- name: allow_servers
-- Of a JSON array of servers those that were not allowed before, as write_audit takes them.
with added as (
    insert into account_server (account_uid, server_uid, added_by)
    select $1, s.uid, $3
      from jsonb_array_elements_text($2::text::jsonb) as n (uid)
      join resource s on s.uid = n.uid::uuid
     where s.type = 'Microsoft.Sql/servers'
    on conflict do nothing
    returning server_uid
)
select coalesce(json_agg(json_build_object(
           'subscription_key', s.subscription_key, 'group_key', s.group_key, 'id', s.id) order by s.key), '[]')::text
  from added a
  join resource s on s.uid = a.server_uid;

-- name: allow_own_server
-- The server of the account's control database.
insert into account_server (account_uid, server_uid, added_by)
select a.uid, s.uid, $2
  from resource a
  join resource s on s.key = a.parent_key and s.tenant_id = a.tenant_id
 where a.uid = $1;

-- name: disallow_server
-- The account may not use it any more.
delete from account_server where account_uid = $1 and server_uid = $2;

-- name: server_anywhere
-- The server of that name in any subscription of the tenant, or none.
select id from resource where type = 'Microsoft.Sql/servers' and lower(name) = lower($1) and tenant_id = $2;
