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
