-- name: lock_mutex
-- One enqueuer of a key at a time, until its transaction ends.
select pg_advisory_xact_lock(hashtextextended('workload ' || $1::text, 0));

-- name: insert_workload
-- Pending and in the queue: one row is both, so neither is ever without the other.
insert into workload (id, kind, account_uid, mutex_key, priority, launch_group, spec, sealed, labels,
                      epoch, claim_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp() + $11::interval)
on conflict (id) do nothing
returning *;

-- name: get_workload
-- One row or none.
select * from workload where id = $1;

-- name: active_of_mutex
-- The one that counts for this key, or none.
select * from workload where mutex_key = $1 and ended_at is null;

-- name: of_account
-- All that is known of an account's workloads, newest first.
select * from workload where account_uid = $1 order by created_at desc, id;

-- name: list_workloads
-- Newest first, of one launcher group; null filters nothing.
select *
  from workload
 where launch_group = $1
   and ($2::text[] is null or state = any ($2::text[]))
   and ($3::text is null or claimed_by = $3)
 order by created_at desc, id
 limit $4;

-- name: launched
-- From claimed; again when launched. One row, or none when that is not so.
update workload
   set state = 'launched', start_by = null, beat_by = clock_timestamp() + $2::interval,
       launched_at = coalesce(launched_at, clock_timestamp())
 where id = $1
   and state in ('claimed', 'launched')
returning *;

-- name: running
-- From claimed or launched; again when running. A command's age counts from here.
update workload
   set state = 'running', start_by = null, beat_by = clock_timestamp() + $2::interval,
       end_by = case when kind = 'command' then coalesce(end_by, clock_timestamp() + $3::interval) end,
       launched_at = coalesce(launched_at, clock_timestamp()),
       running_at = coalesce(running_at, clock_timestamp()),
       heartbeat_at = clock_timestamp(),
       report = coalesce($4, report)
 where id = $1
   and state in ('claimed', 'launched', 'running')
returning *;

-- name: heartbeat
-- Only while running. One row, or none: it must stop.
update workload
   set beat_by = clock_timestamp() + $2::interval, heartbeat_at = clock_timestamp(),
       report = coalesce($3, report)
 where id = $1
   and state = 'running'
returning *;

-- name: end_workload
-- The first end wins: one row, or none when it has ended already. A workload that was never claimed leaves no process.
update workload
   set state = $2, reason = $3, source = $4, message = left($5, 2000), result = $6,
       ended_at = clock_timestamp(),
       gone_at = case when claimed_by is null then clock_timestamp() end,
       claim_by = null, start_by = null, beat_by = null, end_by = null
 where id = $1
   and ended_at is null
returning *;

-- name: gone
-- No process of it is left; the first exit code stays.
update workload
   set gone_at = clock_timestamp(), exit_code = $3
 where id = $1
   and claimed_by = $2
   and ended_at is not null
   and gone_at is null
returning *;

-- name: nudge_account
-- The account's machine looks soon; never waits for the holder of its lock, which looks anyway.
update machine
   set due_at = clock_timestamp()
 where uid = (select uid from machine where uid = $1 and due_at > clock_timestamp()
                 for update skip locked);

-- name: forget_account
-- Rows of processes that are gone; the others stay until they are.
delete from workload where account_uid = $1 and gone_at is not null;

-- name: known_workloads
-- Those of these that still have a row.
select id from workload where id = any ($1::uuid[]);
