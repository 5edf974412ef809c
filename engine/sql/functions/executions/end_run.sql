-- for: engine
create or replace function jobs_internal.end_run(p_epoch bigint, p_run uuid) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
    counts jsonb;
    living bigint;
    reasons jsonb;
    outcome text;
    reason text;
    stopped text;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    if run.end_time is not null then
        return run.lifecycle;
    end if;
    select sum(e.living), jsonb_object_agg(e.lifecycle, e.number), jsonb_object_agg(e.lifecycle, e.reason)
      into living, counts, reasons
      from (select e.lifecycle, count(*) as number, count(*) filter (where e.end_time is null) as living,
                   case when min(e.end_reason) = max(e.end_reason) and count(e.end_reason) = count(*)
                        then min(e.end_reason) end as reason
              from step_execution e
             where e.run_day = run.run_day and e.job_execution_id = p_run
             group by e.lifecycle) e;
    if living > 0 or (counts is null and run.cancel_requested_at is null) then
        return null;
    elsif counts is not null then
        outcome := parent_lifecycle(run.cancel_requested_at is not null, counts);
        reason := reasons ->> outcome;
    end if;
    -- A run that was cancelled between two steps has not succeeded.
    if outcome is null or (run.cancel_requested_at is not null
        and outcome in ('Succeeded', 'SucceededWithSkipped', 'Skipped')
        and exists (select from job_step s
                     where (s.job_id, s.version) = (run.job_id, run.job_version)
                       and not exists (select from step_execution e
                                        where (e.run_day, e.job_execution_id, e.step_id)
                                              = (run.run_day, p_run, s.step_id)))) then
        outcome := 'Canceled';
        reason := 'Canceled';
    end if;
    if run.run_attempts is not null then
        update run_attempt a
           set lifecycle       = case when outcome in ('Failed', 'TimedOut', 'Canceled') then 'Failed' else 'Succeeded' end,
               end_time        = clock_timestamp(),
               newly_succeeded = coalesce(a.newly_succeeded, p.newly_succeeded),
               remaining       = coalesce(a.remaining, p.repeatable)
          from attempt_progress(run) p
         where a.job_execution_id = p_run and a.end_time is null
        returning case when a.reached_limit is not null then a.message
                       when outcome in ('Failed', 'TimedOut') and a.remaining = 0
                       then 'No further attempt: nothing may be repeated.' end
             into stopped;
        update run_attempt a -- the run waited for the next attempt, which does not follow
           set next_start_time = null,
               message         = 'No further attempt: the run ended before it began.'
         where a.job_execution_id = p_run and a.number = run.attempt and a.next_start_time is not null;
    end if;
    update job_execution x
       set lifecycle    = outcome,
           end_time     = clock_timestamp(),
           wait_reason  = null,
           not_before   = null,
           end_reason   = reason,
           target_counts = count_targets(run),
           rows_affected = (select least(sum(e.rows_affected), 9223372036854775807) from step_execution e
                             where (e.run_day, e.job_execution_id) = (run.run_day, p_run)
                            having count(e.rows_affected) > 0),
           last_message = concat_ws(' ', coalesce(summary_sentence('steps', counts), 'Canceled before it started.'), stopped)
     where x.job_execution_id = p_run;
    return outcome;
end $$;
comment on function jobs_internal.end_run(bigint, uuid) is
    'Ends the run with the lifecycle that follows from its steps; null while a step is unfinished or none was '
    'entered. Repeating the call is harmless.';
