-- name: has_unsealed
-- Whether a committed event waits for its place in its chain.
select exists (select from audit_link where seq is null);

-- name: seal
-- How many events got a place; callers follow each other.
select seal_audit($1);

-- name: has_expired
-- Whether the oldest event is older than events are kept.
select coalesce((select at from audit_event order by event_id limit 1) < clock_timestamp() - kept, false)
  from audit_policy;

-- name: prune
-- How many events retention removed from the beginnings of the chains.
select prune_audit($1);
