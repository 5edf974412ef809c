-- name: accounts
-- Every account, and the server that its control database is on.
select a.id, s.uid as server_uid
  from resource a
  join resource s on s.key = a.parent_key and s.tenant_id = a.tenant_id
 where a.type = 'Microsoft.Sql/servers/jobAgents'
 order by a.key;

-- name: end_workloads
-- Their processes belong to the installation that was backed up.
update workload
   set state = 'cancelled', reason = 'requested', source = 'restore',
       message = 'Muster was restored from a backup.',
       ended_at = clock_timestamp(), gone_at = clock_timestamp(),
       claim_by = null, start_by = null, beat_by = null, end_by = null
 where ended_at is null;

-- name: forget_ended
-- No process of theirs is here.
update workload set gone_at = clock_timestamp() where gone_at is null;

-- name: forget_launchers
-- Each launcher registers again when it starts.
delete from launcher;

-- name: free_machines
-- Their runners belong to the installation that was backed up.
update machine set lease_owner = null, lease_until = null where lease_owner is not null;

-- name: mark_accounts
-- The accounts that are still there.
update machine set scratch = scratch || $1 where lifecycle = 'account' and ended_at is null;
