-- name: poll
-- Up to $3, each account in turn, then oldest first; hidden for $4, each from other pollers at once.
with offered as (
    select id,
           row_number() over (partition by account_uid order by queued_at, id) as round
      from workload
     where state = 'pending'
       and launch_group = $1
       and priority = $2
       and visible_at <= clock_timestamp()
), picked as (
    select w.id, row_number() over () as place
      from (select w.id
              from workload w
              join offered using (id)
             where w.state = 'pending'
               and w.visible_at <= clock_timestamp()
             order by offered.round, w.queued_at, w.id
             limit $3
               for update of w skip locked) w
), hidden as (
    update workload w
       set visible_at = clock_timestamp() + $4::interval
      from picked
     where w.id = picked.id
    returning w.*, picked.place
)
select * from hidden order by place;

-- name: lock_taking
-- One taker at a time, until its transaction ends: so that a cap is a cap.
select pg_advisory_xact_lock(x'6d757374616b65'::bigint);

-- name: take
-- The next one for this launcher, claimed; none while it is disabled, starts enough, or a cap is reached.
-- Accounts take turns, those with starts under way come later; a successor waits for an end to be seen.
with full_kind as (
    select kind
      from workload
     where state in ('claimed', 'launched', 'running')
     group by kind
    having count(*) >= nullif(($6::jsonb ->> kind)::integer, 0)
), busy as (
    select account_uid, count(*) as starting
      from workload
     where state in ('claimed', 'launched')
       and priority = $3
     group by account_uid
), offered as (
    select w.id,
           row_number() over (partition by w.account_uid order by w.queued_at, w.id)
               + coalesce(busy.starting, 0) as round
      from workload w
      left join busy on busy.account_uid is not distinct from w.account_uid
     where w.state = 'pending'
       and w.launch_group = $2
       and w.priority = $3
       and w.visible_at <= clock_timestamp()
       and w.kind not in (select kind from full_kind)
       and not exists (select from workload before
                        where before.mutex_key = w.mutex_key
                          and before.gone_at is null
                          and before.ended_at > clock_timestamp() - $5::interval)
)
update workload
   set state = 'claimed', claimed_by = $1, claimed_at = clock_timestamp(),
       claim_by = null, start_by = clock_timestamp() + $7::interval
 where id = (select w.id
               from workload w
               join offered using (id)
              where w.state = 'pending'
                and exists (select from launcher where name = $1 and launch_group = $2 and enabled)
                and (select count(*)
                       from workload mine
                      where mine.claimed_by = $1
                        and mine.state in ('claimed', 'launched')
                        and mine.priority = $3) < $4
              order by offered.round, w.queued_at, w.id
              limit 1
                for update of w skip locked)
returning *;

-- name: claim
-- One winner; for the same launcher again it changes nothing. None when it is another's, or over.
update workload
   set claimed_by = $2, state = 'claimed',
       claimed_at = coalesce(claimed_at, clock_timestamp()),
       claim_by = null, start_by = coalesce(start_by, clock_timestamp() + $4::interval)
 where id = $1
   and launch_group = $3
   and (state = 'pending' and exists (select from launcher where name = $2 and enabled)
        and coalesce((select count(*)
                        from workload other
                       where other.kind = workload.kind
                         and other.state in ('claimed', 'launched', 'running'))
                     < nullif(($5::jsonb ->> kind)::integer, 0), true)
        or state = 'claimed' and claimed_by = $2)
returning *;

-- name: arm
-- The token of the start that follows; none when the workload is no longer this launcher's to start.
update workload
   set token_digest = $3, attempt = attempt + 1
 where id = $1
   and claimed_by = $2
   and state = 'claimed'
returning *;

-- name: release
-- Back into the queue at its old place: nothing was started, so nothing is used up.
update workload
   set state = 'pending', claimed_by = null, claimed_at = null, start_by = null, token_digest = null,
       visible_at = clock_timestamp(), claim_by = clock_timestamp() + $3::interval
 where id = $1
   and claimed_by = $2
   and state = 'claimed'
returning *;

-- name: mine
-- All that this launcher has to do with: claimed by it, and not known to be gone.
select * from workload where claimed_by = $1 and gone_at is null order by claimed_at, id;

-- name: depth
-- What a poll could get now.
select count(*)
  from workload
 where state = 'pending'
   and launch_group = $1
   and ($2::text is null or priority = $2)
   and visible_at <= clock_timestamp();

-- name: stats
-- All that waits, visible or not, and since when.
select launch_group, priority, count(*) as queued, min(queued_at) as oldest
  from workload
 where state = 'pending'
 group by launch_group, priority
 order by launch_group, priority;

-- name: clean
-- Forgets up to $2 that ended longer ago than $1 and are gone, or whose launcher is away as long.
with old as (
    select id
      from workload w
     where ended_at < clock_timestamp() - $1::interval
       and (gone_at is not null
            or not exists (select from launcher l
                            where l.name = w.claimed_by
                              and l.heartbeat_at > clock_timestamp() - $1::interval))
     order by ended_at
     limit $2
), dropped as (delete from workload using old where workload.id = old.id returning 1)
select count(*) from dropped;
