-- name: publish
-- How many events got a number; fewer than the limit: there are no more.
select jobs_internal.publish_events($1, $2);

-- name: prune
-- How many expired events were deleted.
select jobs_internal.prune_events($1, $2, $3);

-- name: due_deliveries
-- For each webhook the first deliveries that are due.
select webhook_id, number, name, url, secret, attempts, max_attempts, event_id, kind, notifications, job_execution_id,
       payload::text as payload, created_at, database_id
  from jobs_internal.due_deliveries($1, $2);

-- name: record_delivery
-- The end of an attempt is recorded.
select jobs_internal.record_delivery($1, $2, $3, $4, $5, $6, $7);
