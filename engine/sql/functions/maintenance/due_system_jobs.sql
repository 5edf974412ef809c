-- for: engine
create or replace function jobs_internal.due_system_jobs(p_epoch bigint, p_busy uuid[])
returns table (job_id uuid, job_name text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    duties constant uuid[] := array(select s.job_id from system_job_definitions() s where s.interval_type is not null);
    left_over uuid[];
begin
    perform check_epoch(p_epoch);
    with ended as (
        update job_execution x
           set lifecycle    = 'Failed',
               end_time     = now,
               end_reason   = 'InternalError',
               last_message = 'It was broken off: the engine stopped, or the control database was away.'
         where x.job_id = any(duties) and x.job_id <> all(p_busy) and x.end_time is null
        returning x.job_id, x.job_execution_id
    ), closed as (
        update cancellation c
           set completed_at = now, cancel_method = 'nothing'
          from ended e
         where c.job_execution_id = e.job_execution_id and c.completed_at is null
    )
    select array_agg(e.job_id) into left_over from ended e;
    return query
    select j.job_id, s.name
      from system_job_definitions() s
      join job j on j.job_id = s.job_id
     where j.job_id = any(duties) and j.job_id <> all(p_busy) and j.enabled and j.deleted_at is null
       and (j.next_slot is null or j.next_slot <= now or j.job_id = any(left_over));
end $$;
comment on function jobs_internal.due_system_jobs(bigint, uuid[]) is
    'The system jobs that are due, except running ones; a run that was interrupted counts as failed, and its job is '
    'due.';
