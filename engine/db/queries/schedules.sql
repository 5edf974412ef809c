-- name: due_jobs
-- Jobs whose next slot has come or is not known yet, at most so many of each, with the database's time.
select job_id, job_name, row_version, interval_type, interval_count, cron, time_zone, start_time, end_time, since,
       misfire_policy, misfire_within_seconds, last_slot, now
  from jobs_internal.due_jobs($1, $2);

-- name: next_slot
-- Seconds until the next slot; null when none is known.
select jobs_internal.next_slot($1);

-- name: decide_slots
-- What was decided for jobs that are still as they were read; all or nothing, and again is harmless.
select jobs, fired, skipped, coalesced, missed from jobs_internal.decide_slots($1, $2, $3, $4, $5, $6, $7, $8);

-- name: break_schedule
-- False when the job was edited meanwhile: then it is looked at again.
select jobs_internal.disable_broken_schedule($1, $2, $3, $4);
