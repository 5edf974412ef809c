-- for: owner
create or replace function jobs_internal.lock_job(p_name text) returns jobs_internal.job
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    locked job;
begin
    select * into locked from job j
     where lower(j.name) = lower(p_name) and j.deleted_at is null for no key update;
    if not found then
        perform raise_error('MU010', 'job_name', format('job "%s" was not found', p_name));
    elsif locked.system then
        perform raise_error('MU013', 'job_name',
            format('job "%s" is a system job and can''t be changed', p_name));
    end if;
    return locked;
end $$;
comment on function jobs_internal.lock_job(text) is
    'The job, locked until the transaction ends; raises for a job that users must not change.';
