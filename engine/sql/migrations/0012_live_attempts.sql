-- expand: what a start writes is in no index, so that the next version of the row needs none
drop index jobs_internal.one_live_attempt;
create unique index one_live_attempt on jobs_internal.task (run_day, job_execution_id, step_id, ordinal)
    where end_time is null;
