-- for: owner
create or replace function jobs_internal.refuse_start(p_job jobs_internal.job) returns void
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    refusal constant text := (
        select case when i.draining or i.released_at is not null then 'the account is being deleted: nothing new starts'
                    when i.paused then 'the account is paused: nothing starts until jobs.sp_resume()'
                    when p_job.paused then format('job "%s" is paused', p_job.name)
                    when not exists (select from job_step s
                                      where (s.job_id, s.version) = (p_job.job_id, p_job.version))
                    then format('job "%s" has no steps', p_job.name) end
          from instance i);
begin
    if refusal is not null then
        raise exception '%', refusal using errcode = 'MU013', column = 'job_name';
    end if;
end $$;
comment on function jobs_internal.refuse_start(jobs_internal.job) is 'Raises if no run of the job may be started now.';
