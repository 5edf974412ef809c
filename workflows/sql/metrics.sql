-- name: engine_reports
-- What each running engine and host last reported, with its account; at most so many rows.
select s.name || '/' || a.name as account,
       w.kind,
       coalesce(split_part(w.mutex_key, '/', 3), '') as number,
       extract(epoch from w.heartbeat_at)::double precision as heartbeat,
       w.report -> 'metrics' as metrics
  from workload w
  join resource a on a.uid = w.account_uid
  join resource s on s.tenant_id = a.tenant_id and s.key = a.parent_key
 where w.ended_at is null
   and w.state = 'running'
   and w.kind in ('engine', 'host')
   and w.report is not null
 order by w.account_uid, w.kind, w.mutex_key
 limit $1;

-- name: control_plane
-- What the control plane does now: rows of a series, the values of its labels, and a number.
select 'workloads' as series, array[kind, state] as labels, count(*)::double precision as value
  from workload
 where ended_at is null
 group by kind, state
union all
select 'queue', array[launch_group, priority::text], count(*)
  from workload
 where state = 'pending'
 group by launch_group, priority
union all
select 'operations', '{}', count(*)
  from operation
 where ended_at is null
union all
select 'due', '{}', count(*)
  from machine
 where due_at <= clock_timestamp()
   and (lease_until is null or lease_until < clock_timestamp())
union all
select 'tick', array[name], extract(epoch from ticked_at)
  from watch;
