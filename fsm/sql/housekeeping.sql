-- name: try_lock
-- True in one session at a time.
select pg_try_advisory_lock($1);

-- name: unlock
-- Another process may take it.
select pg_advisory_unlock($1);

-- name: embedded_servers
-- Those that should run: neither being made nor being removed.
select r.*
  from resource r
  join machine m on m.uid = r.uid
 where r.type = 'Microsoft.Sql/servers'
   and r.properties -> 'endpoint' is null
   and m.lifecycle = 'server'
   and m.state in ('ready', 'updating')
 order by r.key;

-- name: set_port
-- Where a cluster answers now, when that changed.
update resource
   set observed = jsonb_set(observed, '{endpoint,port}', to_jsonb($2::integer)),
       row_version = row_version + 1
 where uid = $1
   and (observed #>> '{endpoint,port}')::integer is distinct from $2::integer;

-- name: ended_machines
-- Those of these that are known to be over.
select uid from machine where uid = any($1::uuid[]) and ended_at is not null;

-- name: forget_answers
-- Old enough that no repeated request will ask for them.
delete from answer where created_at < clock_timestamp() - $1::interval;
