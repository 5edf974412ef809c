-- for: engine
create or replace function jobs_internal.attempt_outcome(
    p_epoch bigint, p_run uuid, out earlier integer[], out newly_succeeded integer, out remaining integer
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run;
    select p.earlier, p.newly_succeeded, p.remaining
      into earlier, newly_succeeded, remaining from attempt_progress(run) p;
end $$;
comment on function jobs_internal.attempt_outcome(bigint, uuid) is
    'What the running attempt of a run came to, when all targets of its unfinished steps have ended: how many newly '
    'succeeded in it and in each attempt before it, and how many another attempt would take.';
