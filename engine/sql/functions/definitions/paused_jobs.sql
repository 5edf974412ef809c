-- for: engine
create or replace function jobs_internal.paused_jobs(p_epoch bigint) returns setof uuid
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select distinct j.job_id
      from job_execution x
      join job j on j.job_id = x.job_id
     where x.end_time is null
       and j.paused;
end $$;
comment on function jobs_internal.paused_jobs(bigint) is 'Paused jobs that have live runs.';
