-- for: engine
create or replace function jobs_internal.begin_attempt(p_epoch bigint, p_run uuid) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    run job_execution;
    step integer;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    if run.lifecycle <> 'WaitingForRetry' or run.cancel_requested_at is not null then
        return false;
    end if;
    perform lock_dispatch();
    update job_execution x
       set lifecycle    = 'WaitingForChildJobExecutions',
           wait_reason  = null,
           not_before   = null,
           last_message = format('Attempt %s started.', x.attempt + 1)
     where x.job_execution_id = p_run;
    perform start_run_attempt(p_run);
    for step in
        update step_execution e
           set lifecycle    = 'WaitingForChildJobExecutions',
               wait_reason  = null,
               not_before   = null,
               last_message = format('Attempt %s started.', run.attempt + 1)
         where e.run_day = run.run_day and e.job_execution_id = p_run and e.end_time is null
        returning e.step_id
    loop
        perform retry_targets(p_run, step, array(
            select t.ordinal from target_execution t
             where t.run_day = run.run_day and t.job_execution_id = p_run and t.step_id = step and t.repeatable), true);
    end loop;
    -- The core loads the run again.
    update job_execution x set retries = x.retries + 1 where x.job_execution_id = p_run;
    perform pg_notify('muster_execution', '');
    return true;
end $$;
comment on function jobs_internal.begin_attempt(bigint, uuid) is
    'Begins the next attempt of a run that waits for it: the targets that may be repeated go back to Created, with those '
    'that were skipped because of them in later steps of a chain. False: the run does not wait any more, or is being '
    'cancelled.';
