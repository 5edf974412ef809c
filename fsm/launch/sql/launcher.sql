-- name: register
-- Also the heartbeat. None when a living launcher elsewhere has this name.
insert into launcher (name, launch_group, home, capacity, version)
values ($1, $2, $3, $4, $5)
on conflict (name) do update
   set launch_group = excluded.launch_group, home = excluded.home, capacity = excluded.capacity,
       version = excluded.version, heartbeat_at = clock_timestamp(),
       registered_at = case when launcher.home = excluded.home then launcher.registered_at
                            else clock_timestamp() end
 where launcher.home = excluded.home
    or launcher.heartbeat_at < clock_timestamp() - $6::interval
returning *;

-- name: launchers
-- Every launcher that was ever registered, and how long it has been silent.
select *, extract(epoch from clock_timestamp() - heartbeat_at)::float8 as silent_for
  from launcher
 order by launch_group, name;

-- name: other_versions
-- Whether a launcher of the group lives, in that time, that has another version than this.
select exists (select from launcher
                where launch_group = $1
                  and enabled
                  and heartbeat_at > clock_timestamp() - $2::interval
                  and version is distinct from $3);

-- name: enable_launcher
-- False: it starts nothing new; what runs goes on.
update launcher set enabled = $2 where name = $1 returning *;
