-- for: engine
create or replace function jobs_internal.wait_for_attempt(
    p_epoch bigint, p_run uuid, p_newly_succeeded integer, p_remaining integer, p_due double precision, p_message text
) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    due constant timestamptz := greatest(to_timestamp(p_due), clock_timestamp());
    run job_execution;
    sentence text;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    sentence := format('Attempt %s: %s. Attempt %s begins at %s.', run.attempt, p_message, run.attempt + 1,
                       iso_time(date_trunc('second', due)));
    if run.lifecycle = 'WaitingForRetry' then
        return 'waits';
    elsif run.end_time is not null or run.cancel_requested_at is not null
          or exists (select from step_execution e
                      where (e.run_day, e.job_execution_id) = (run.run_day, p_run) and e.end_time is null
                        and coalesce(e.cancel_requested_at, e.aborted_at) is not null) then
        return 'stopped';
    elsif exists (select from target_execution t
                   where t.run_day = run.run_day and t.job_execution_id = p_run and t.end_time is null) then
        return 'unfinished';
    end if;
    update run_attempt a
       set lifecycle       = 'Failed',
           end_time        = clock_timestamp(),
           newly_succeeded = p_newly_succeeded,
           remaining       = p_remaining,
           next_start_time = due,
           message         = sentence
     where a.job_execution_id = p_run and a.end_time is null;
    update step_execution e
       set lifecycle    = 'WaitingForRetry',
           wait_reason  = 'NextRunAttempt',
           not_before   = due,
           last_message = sentence
     where e.run_day = run.run_day and e.job_execution_id = p_run and e.end_time is null;
    update job_execution x
       set lifecycle    = 'WaitingForRetry',
           wait_reason  = 'NextRunAttempt',
           not_before   = due,
           last_message = sentence
     where x.job_execution_id = p_run;
    perform pg_notify('muster_execution', '');
    return 'waits';
end $$;
comment on function jobs_internal.wait_for_attempt(bigint, uuid, integer, integer, double precision, text) is
    'The running attempt of a run has failed, and the run waits for the next one until then. stopped: the run is being '
    'cancelled or was aborted, and does not wait. unfinished: a target has not ended. Repeating the call is harmless.';
