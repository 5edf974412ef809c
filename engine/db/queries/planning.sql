-- name: look
-- The database's clock in seconds, the limits of the servers, and the paused jobs.
select extract(epoch from pg_catalog.clock_timestamp())::double precision as now,
       (select coalesce(pg_catalog.json_agg(l), '[]')::text from jobs_internal.read_limits($1) l) as limits,
       array(select p from jobs_internal.paused_jobs($1) p) as paused;

-- name: news
-- Unfinished runs that the core does not have, the oldest first, open cancellations, and the group that new runs begin with.
select runs::text, orders::text, group_name, document::text from jobs_internal.poll_updates($1, $2);

-- name: plenty_of_time
-- A longer timeout, for the plan of a large fleet.
select pg_catalog.set_config('statement_timeout', '15min', true);

-- name: watch_client
-- The server notices when the client has disconnected; fails where the server can't.
select pg_catalog.set_config('client_connection_check_interval', '1000', true);

-- name: reach_step
-- Enters the first step of a run: Begun, Skipped, Queued, Canceled, Paused or Over.
select jobs_internal.enter_step($1, $2, $3);

-- name: plan_step
-- The same with the step's targets as columns; the ordinals that are skipped, null when they were planned before.
select begun, skipped
  from jobs_internal.plan_step($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14,
                                  $15::text[]::jsonb[], $16, $17);

-- name: plan_and_reserve
-- The same; also reserves tasks of its targets if the run has begun and no target is skipped.
with planned as materialized (
    select begun, skipped
      from jobs_internal.plan_step($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14,
                                      $15::text[]::jsonb[], $16, $17)
)
select begun, skipped,
       case when begun = 'Begun' and skipped = '{}'
            then jobs_internal.reserve_and_cancel($1, $18, $19, $20, $21, $22, $23, $24, '{}', '{}') end as reserved
  from planned;

-- name: cancel_everything
-- Requests the cancellation of every run: the account is being deleted.
select jobs_internal.cancel_everything($1);
