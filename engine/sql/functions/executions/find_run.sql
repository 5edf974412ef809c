-- for: owner
create or replace function jobs_internal.find_run(p_job text, p_execution text, p_deleted boolean)
returns jobs_internal.job_execution
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
begin
    select x.* into run
      from job_execution x
      join job j on j.job_id = x.job_id
     where x.job_execution_id = uuid_or_null(p_execution)
       and lower(j.name) = lower(p_job)
       and (j.deleted_at is null or p_deleted);
    if not found then
        raise exception 'execution % of job "%" was not found', p_execution, p_job using errcode = 'MU010';
    end if;
    return run;
end $$;
comment on function jobs_internal.find_run(text, text, boolean) is
    'The run of a job that a path names; runs of deleted jobs only if requested.';
