-- name: try_monitor
-- True in one session at a time.
select pg_try_advisory_lock($1);

-- name: leave_monitor
-- Lets another process do it.
select pg_advisory_unlock($1);

-- name: tick
-- Who ticks is awake. After a gap longer than $2, silence is judged only $3 later.
insert into watch (name, ticked_at, judges_from)
values ($1, clock_timestamp(), clock_timestamp() + $3::interval)
on conflict (name) do update
   set ticked_at = excluded.ticked_at,
       judges_from = case when watch.ticked_at < excluded.ticked_at - $2::interval
                          then excluded.judges_from else watch.judges_from end
returning *;

-- name: watches
-- When each of them was awake last.
select * from watch order by name;

-- name: overdue
-- What each state waited too long for. A pending one may wait as long as its group has a launcher ($1);
-- silence counts only while the Workload API receives heartbeats ($2), and no workload is judged by a monitor
-- that has just come back.
select id, state,
       case when state = 'pending' then 'not_claimed'
            when state = 'claimed' then 'not_started'
            when end_by < clock_timestamp() then 'too_old'
            else 'silent' end as reason
  from workload w
 where ended_at is null
   and not exists (select from watch where name = 'monitor' and judges_from > clock_timestamp())
   and (start_by < clock_timestamp()
        or end_by < clock_timestamp()
        or beat_by < clock_timestamp()
           and not exists (select from watch
                            where name = 'api'
                              and (judges_from > clock_timestamp()
                                   or ticked_at < clock_timestamp() - $2::interval))
        or claim_by < clock_timestamp()
           and not exists (select from launcher l
                            where l.launch_group = w.launch_group
                              and l.heartbeat_at > clock_timestamp() - $1::interval))
 order by least(claim_by, start_by, beat_by, end_by)
 limit $3;

-- name: hold_overdue
-- Locks the row when it is still in that state and still too late; none when it moved or spoke.
select *
  from workload
 where id = $1
   and state = $2
   and ended_at is null
   and least(claim_by, start_by, beat_by, end_by) < clock_timestamp()
   for update;
