-- name: lock_resource
-- The row of a machine's resource; none when it is gone.
select * from resource where uid = $1 for update;

-- name: try_resource
-- The same, or none when another transaction holds it right now.
select * from resource where uid = $1 for update skip locked;

-- name: get_resource
-- One row or none.
select * from resource where uid = $1;

-- name: resource_by_key
-- One row or none; below a subscription a key belongs to one tenant.
select * from resource where key = $1;

-- name: parent_of
-- What a resource stands in, or none when that is gone.
select parent.*
  from resource child
  join resource parent on parent.key = child.parent_key and parent.tenant_id = child.tenant_id
 where child.uid = $1;

-- name: show
-- What GET shows from here on.
update resource
   set provisioning_state = $2,
       observed = $3,
       row_version = row_version + 1
 where uid = $1;

-- name: show_paused
-- Unless it was written since it was read: then that is newer.
update resource
   set observed    = observed || jsonb_build_object('paused', $2::boolean),
       row_version = row_version + 1
 where uid = $1
   and row_version = $3;

-- name: restore
-- The settings from before an update that did not happen; what $2 does not name stays.
update resource
   set properties  = coalesce($2::jsonb -> 'properties', properties),
       sealed      = coalesce($2::jsonb -> 'sealed', sealed),
       tags        = coalesce($2::jsonb -> 'tags', tags),
       location    = case when $2::jsonb ? 'location' then $2::jsonb ->> 'location' else location end,
       kind        = case when $2::jsonb ? 'kind' then $2::jsonb ->> 'kind' else kind end,
       sku         = case when $2::jsonb ? 'sku' then nullif($2::jsonb -> 'sku', 'null') else sku end,
       identity    = case when $2::jsonb ? 'identity' then nullif($2::jsonb -> 'identity', 'null') else identity end,
       row_version = row_version + 1
 where uid = $1;

-- name: forget_extensions
-- Role assignments and the like vanish with what they stood on.
delete from resource e
 using resource r
 where r.uid = $1
   and e.tenant_id = r.tenant_id
   and starts_with(e.key, r.key || '/providers/')
   and e.type like 'Microsoft.Authorization/%';

-- name: forget_resource
-- The end: GET answers 404 from here on.
delete from resource where uid = $1;

-- name: children
-- What stands directly below, with its machine where it has one.
select r.*, m.lifecycle, m.state, m.operation_id as machine_operation
  from resource parent
  join resource r on r.parent_key = parent.key and r.tenant_id = parent.tenant_id
  left join machine m on m.uid = r.uid and m.ended_at is null
 where parent.uid = $1
   and r.type not like 'Microsoft.Authorization/%'
 order by r.key;

-- name: servers_of_account
-- A JSON array of the servers that an account may use as targets, their pools and their databases with labels; `previous` are the settings
-- that hold while an update of them is waiting or being verified. One text: there may be thousands, and rows would
-- be decoded on the event loop.
select coalesce(json_agg(to_jsonb(o) || jsonb_build_object('previous',
       case m.state
            when 'updating' then m.scratch -> 'signal' -> 'previous'
            when 'ready' then (select s.payload -> 'previous'
                                 from signal s
                                where s.machine_uid = m.uid and s.taken_at is null and s.name = 'update'
                                order by s.signal_id
                                limit 1)
       end) order by o.key), '[]')::text
  from account_server a
  join resource r on r.uid = a.server_uid
  join resource o on o.tenant_id = r.tenant_id
                 and (o.uid = r.uid
                      or (o.parent_key = r.key
                          and (o.type = 'Microsoft.Sql/servers/elasticPools'
                               or (o.type = 'Microsoft.Sql/servers/databases' and o.properties ? 'labels'))))
  left join machine m on m.uid = o.uid and m.ended_at is null
 where a.account_uid = $1;

-- name: directory_revision
-- A number that rises from call to call.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint;

-- name: get_by_uid
-- One row or none.
select * from resource where uid = $1;
