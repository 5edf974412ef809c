-- for: engine
create or replace function jobs_internal.begin_run(p_epoch bigint, p_run uuid) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
    decision text;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    decision := may_begin(run);
    if decision = 'Begun' and run.lifecycle = 'Created' then
        update job_execution x
           set lifecycle    = 'InProgress',
               start_time   = clock_timestamp(),
               wait_reason  = null,
               last_message = 'Job execution started.'
         where x.job_execution_id = p_run;
        perform start_run_attempt(p_run);
    end if;
    return decision;
end $$;
comment on function jobs_internal.begin_run(bigint, uuid) is
    'Begins a run if may_begin allows it; returns Begun, Skipped, Queued, Canceled, Paused or Over. Repeating the '
    'call is harmless.';
