-- for: owner
create or replace function jobs_internal.count_failure(p_run jobs_internal.job_execution) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    number integer;
begin
    -- A deletion of the job holds this lock and waits for its runs.
    perform from job j where j.job_id = p_run.job_id for key share skip locked;
    if not found then
        return 0;
    end if;
    update job_health h
       set failures = h.failures + 1
     where h.job_id = p_run.job_id
    returning h.failures into number;
    if number is null then
        insert into job_health as h (job_id, failures, since)
        values (p_run.job_id, 1, coalesce((
            select x.end_time from job_execution x
             where x.job_id = p_run.job_id and x.lifecycle in ('Succeeded', 'SucceededWithSkipped')
             order by x.create_time desc, x.job_execution_id desc limit 1), p_run.create_time))
        on conflict (job_id) do update set failures = h.failures + 1
        returning h.failures into number;
    end if;
    return number;
end $$;
comment on function jobs_internal.count_failure(jobs_internal.job_execution) is
    'Counts a run that failed; returns how many runs of its job have failed in a row, or 0 while the job is being deleted.';
