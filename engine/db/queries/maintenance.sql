-- name: keep_system_jobs
-- Repairs the system jobs; a row for each that differed.
select job_name, differed::text as differed, repaired from jobs_internal.repair_system_jobs($1);

-- name: due_duties
-- The system jobs that are due, except running ones.
select job_id, job_name from jobs_internal.due_system_jobs($1, $2);

-- name: begin_duty
-- False when another transaction has locked the job.
select jobs_internal.begin_system_job($1, $2, $3);

-- name: end_duty
-- Stores the outcome in the run; a job that failed is due again soon.
select jobs_internal.end_system_job($1, $2, $3, $4, $5);

-- name: make_room
-- Creates the partitions of today and tomorrow; returns the days that were missing.
select jobs_internal.create_partitions($1);

-- name: prune_history
-- Deletes one batch of expired history; returns whether there is more.
select days, runs, more from jobs_internal.prune_history($1, $2);

-- name: analyze
-- The table that was analyzed, or null when no table needs it.
select jobs_internal.analyze_tables($1, $2);
