-- for: engine
create or replace function jobs_internal.begin_system_job(p_epoch bigint, p_job_id uuid, p_run uuid) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    duty job;
begin
    perform check_epoch(p_epoch);
    select * into duty from job j where j.job_id = p_job_id and j.enabled for no key update skip locked;
    if not found then
        return false;
    end if;
    update job j
       set next_slot = now + (s.interval_count || ' ' || s.interval_type)::interval
      from system_job_definitions() s
     where j.job_id = p_job_id and s.job_id = p_job_id;
    if p_run is not null then
        insert into job_execution (job_execution_id, job_id, job_version, run_day, lifecycle, origin, actor, door,
                                   create_time, start_time)
        values (p_run, p_job_id, duty.version, (now at time zone 'UTC')::date, 'InProgress', 'system', 'muster',
                'engine', now, now);
    end if;
    return true;
end $$;
comment on function jobs_internal.begin_system_job(bigint, uuid, uuid) is
    'Begins a system job, with a run if its id is passed. False: another transaction has locked the job.';
