-- for: engine
create or replace function jobs_internal.open_cancellations(p_epoch bigint)
returns table (cancellation_id uuid, job_execution_id uuid, step_id integer, ordinal integer,
               requested_at timestamptz, reason text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select c.cancellation_id, c.job_execution_id, c.step_id, c.ordinal, c.requested_at, c.reason
      from cancellation c
     where c.completed_at is null
     order by c.requested_at;
end $$;
comment on function jobs_internal.open_cancellations(bigint) is
    'Cancellations that are not complete, the oldest first.';
