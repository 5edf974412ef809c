-- name: beat
-- This agent is there, under its name; agents without a heartbeat for a day are deleted.
with forgotten as (
    delete from node_agents
     where heartbeat_at < clock_timestamp() - interval '1 day' and name <> $1
)
insert into node_agents as a (name, url, servers, version)
values ($1, $2, $3, $4)
on conflict (name) do update
   set url          = excluded.url,
       servers      = excluded.servers,
       version      = excluded.version,
       heartbeat_at = clock_timestamp(),
       started_at   = case when a.url = excluded.url then a.started_at else clock_timestamp() end;

-- name: leave
-- Only our own row: a successor of the same name has another address.
delete from node_agents where name = $1 and url = $2;

-- name: routes
-- Live agents that stand beside the server, those of few servers first, the rest in any order.
select url
  from node_agents
 where heartbeat_at > clock_timestamp() - $2::interval
   and (servers is null or $1 = any(servers))
 order by servers is null, random();
