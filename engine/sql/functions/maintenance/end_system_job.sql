-- for: engine
create or replace function jobs_internal.end_system_job(
    p_epoch bigint, p_job_id uuid, p_run uuid, p_lifecycle text, p_message text
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
begin
    perform check_epoch(p_epoch);
    insert into job_execution (job_execution_id, job_id, job_version, run_day, lifecycle, origin, actor, door,
                               create_time, start_time)
    select p_run, j.job_id, j.version, (now at time zone 'UTC')::date, 'InProgress', 'system', 'muster', 'engine',
           now, now
      from job j
     where j.job_id = p_job_id
    on conflict (job_execution_id) do nothing;
    update job_execution x
       set lifecycle    = p_lifecycle,
           end_time     = now,
           end_reason   = case p_lifecycle when 'Failed' then 'InternalError' end,
           last_message = left(p_message, 2000)
     where x.job_execution_id = p_run and x.end_time is null;
    -- A system job is short: a cancellation is complete when the job has ended.
    update cancellation c
       set completed_at = now, cancel_method = 'nothing'
     where c.job_execution_id = p_run and c.completed_at is null;
    if p_lifecycle = 'Failed' then
        update job j set next_slot = least(j.next_slot, now + interval '10 min') where j.job_id = p_job_id;
    end if;
end $$;
comment on function jobs_internal.end_system_job(bigint, uuid, uuid, text, text) is
    'Ends a system job, and creates its run if it has none yet. A job that failed is due again soon.';
