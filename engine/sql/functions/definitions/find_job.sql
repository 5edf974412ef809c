-- for: owner
create or replace function jobs_internal.find_job(p_name text) returns jobs_internal.job
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wanted job;
begin
    select * into wanted from job j where lower(j.name) = lower(p_name) and j.deleted_at is null and not j.system;
    if not found then
        raise exception 'job "%" was not found', p_name using errcode = 'MU010', column = 'job_name';
    end if;
    return wanted;
end $$;
comment on function jobs_internal.find_job(text) is 'A job that users define; raises when it does not exist.';
