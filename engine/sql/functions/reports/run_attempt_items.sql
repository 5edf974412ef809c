-- for: owner
create or replace function jobs_internal.run_attempt_items(p_run uuid) returns jsonb
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'attempt', a.number, 'lifecycle', a.lifecycle, 'startTime', iso_time(a.start_time),
               'endTime', iso_time(a.end_time), 'newlySucceeded', a.newly_succeeded, 'remaining', a.remaining,
               'nextAttemptTime', iso_time(a.next_start_time), 'reachedLimit', a.reached_limit,
               'message', nullif(a.message, ''))) order by a.number), '[]')
      from run_attempt a
     where a.job_execution_id = p_run
$$;
comment on function jobs_internal.run_attempt_items(uuid) is 'The attempts of a run, in their order, as REST shows them.';
