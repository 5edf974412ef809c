-- name: time
-- The database's clock, in seconds.
select extract(epoch from pg_catalog.clock_timestamp())::double precision;

-- name: plenty_of_time
-- For what a large fleet takes longer to write.
select pg_catalog.set_config('statement_timeout', '15min', true);

-- name: store_snapshot
-- The targets of a step, as columns.
select jobs_internal.store_snapshot_v1($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9, $10, $11, $12,
                                       $13::text[]::jsonb[], $14, $15);

-- name: plan_targets
-- Every target of the snapshot is a target execution.
select jobs_internal.plan_targets_v1($1, $2, $3, $4);

-- name: paused_jobs
-- Jobs of which nothing new starts.
select job_id from jobs_internal.paused_jobs_v1($1) job_id;

-- name: limits
-- How many sessions and tasks each server bears.
select server_id, max_connections, budget, slots_per_database, disabled, pools::text as pools
  from jobs_internal.limits_v1($1);

-- name: cancel_everything
-- The account is going: every run is asked to stop.
select jobs_internal.cancel_everything_v1($1);
