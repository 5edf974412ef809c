-- name: due_jobs
-- Jobs whose next slot is due or not computed, at most this number of each, with the database's time.
select job_id, job_name, row_version, interval_type, interval_count, cron, time_zone, start_time, end_time, since,
       misfire_policy, misfire_within_seconds, last_slot, now
  from jobs_internal.due_jobs($1, $2);

-- name: next_slot
-- Seconds until the next slot; null when none is computed.
select jobs_internal.next_slot($1);

-- name: decide_slots
-- Records decisions for jobs that have not changed since they were read; repeating it is harmless.
select jobs, fired, skipped, coalesced, missed from jobs_internal.decide_slots($1, $2, $3, $4, $5, $6, $7, $8);

-- name: break_schedule
-- Disables a schedule that can't be computed; false when the job was edited meanwhile.
select jobs_internal.disable_broken_schedule($1, $2, $3, $4);
