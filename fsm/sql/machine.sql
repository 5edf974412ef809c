-- name: create_machine
-- Born in its first state and due at once.
insert into machine (uid, lifecycle, resource_id, state, due_at, operation_id, scratch)
values ($1, $2, $3, $4, clock_timestamp(), $5, $6);

-- name: get_machine
-- One row or none; a machine outlives its resource.
select * from machine where uid = $1;

-- name: due_machines
-- The longest-waiting machines that no runner holds; nothing is locked.
select uid
  from machine
 where due_at <= clock_timestamp()
   and (lease_until is null or lease_until < clock_timestamp())
 order by due_at
 limit $1;

-- name: next_due
-- Seconds until something becomes due or a lease ends; null when every machine rests.
select extract(epoch from min(greatest(due_at, lease_until)) - clock_timestamp())::float8
  from machine
 where due_at is not null;

-- name: take_lease
-- One row, or none when another runner holds the machine, it is not due or has ended.
update machine
   set lease_owner = $2,
       lease_until = clock_timestamp() + $3::interval,
       attempt     = attempt + 1,
       version     = version + 1
 where uid = (select uid
                from machine
               where uid = $1
                 and due_at <= clock_timestamp()
                 and (lease_until is null or lease_until < clock_timestamp())
                 for update skip locked)
returning *, coalesce(deadline_at <= clock_timestamp(), false) as overdue;

-- name: record_intent
-- What will be tried now, before it is tried; a newborn's deadline counts from its birth.
update machine
   set command_id = $2, deadline_at = coalesce(deadline_at, state_entered_at + $3::interval)
 where uid = $1;

-- name: hold
-- Locks the machine when this version of it is still ours; none when the lease was lost.
select * from machine where uid = $1 and version = $2 and lease_owner = $3 for update;

-- name: move_machine
-- The move to another state: a fresh deadline, no attempt, no lease; due $6 from now, null = rests.
update machine
   set state = $2, state_entered_at = clock_timestamp(), deadline_at = clock_timestamp() + $3::interval,
       operation_id = $4, scratch = $5, due_at = clock_timestamp() + $6::interval,
       last_error = $7, ended_at = case when $8 then clock_timestamp() end,
       attempt = 0, command_id = null, waiting_for = null,
       lease_owner = null, lease_until = null, version = version + 1
 where uid = $1;

-- name: stay
-- No move: looks again after $2, or at its deadline if that is sooner. $6: a new deadline, counted from now.
update machine
   set deadline_at = coalesce(clock_timestamp() + $6::interval, deadline_at),
       due_at = least(clock_timestamp() + $2::interval,
                      coalesce(clock_timestamp() + $6::interval, deadline_at)),
       attempt = $3, waiting_for = $4, last_error = coalesce($5, last_error),
       lease_owner = null, lease_until = null, version = version + 1
 where uid = $1;

-- name: remember
-- What a step knows before it is done.
update machine set scratch = scratch || $2 where uid = $1;

-- name: adopt_operation
-- The work under way answers to this operation from now on.
update machine set operation_id = $2 where uid = $1;

-- name: nudge_parent
-- The parent of a resource looks soon at what became of its child.
update machine m
   set due_at = clock_timestamp()
  from resource child
  join resource parent on parent.key = child.parent_key and parent.tenant_id = child.tenant_id
 where child.uid = $1
   and m.uid = parent.uid
   and m.due_at > clock_timestamp();

-- name: write_history
-- The next link of the chain.
insert into history (machine_uid, seq, from_state, to_state, reason, operation_id, runner)
select $1::uuid, coalesce(max(seq), 0) + 1, $2, $3, $4, $5, $6
  from history
 where machine_uid = $1::uuid;

-- name: history_of
-- Every move of one machine, oldest first.
select * from history where machine_uid = $1 order by seq;

-- name: now
-- The clock that all times of machines are of.
select clock_timestamp();

-- name: resting_accounts
-- Accounts that should have a live engine and a sound control database.
select uid from machine where lifecycle = 'account' and state = 'ready' and ended_at is null;

-- name: idle_accounts
-- Accounts that failed, though processes were wanted for them.
select m.uid
  from machine m
 where m.lifecycle = 'account'
   and m.state = 'failed'
   and exists (select from workload w where w.account_uid = m.uid and w.ended_at is null);
