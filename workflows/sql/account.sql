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
