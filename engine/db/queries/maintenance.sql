-- name: keep_system_jobs
-- The jobs of Muster itself are as they must be; a row for each that was not.
select job_name, differed::text as differed, repaired from jobs_internal.repair_system_jobs($1);

-- name: due_duties
-- What Muster has to do for itself now, but for what is being done.
select job_id, job_name from jobs_internal.due_system_jobs($1, $2);

-- name: begin_duty
-- False when somebody holds the job just now.
select jobs_internal.begin_system_job($1, $2, $3);

-- name: end_duty
-- The run tells how it went; a duty that failed is due again soon.
select jobs_internal.end_system_job($1, $2, $3, $4, $5);

-- name: make_room
-- The days that were made, of today and tomorrow.
select jobs_internal.create_partitions($1);

-- name: prune_history
-- One bite of what is past its time, and whether to go on.
select days, runs, more from jobs_internal.prune_history($1, $2);

-- name: analyze
-- The table that was counted, or null when none needs it.
select jobs_internal.analyze_tables($1, $2);
