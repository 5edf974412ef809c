-- for: owner
create or replace function jobs_internal.find_jobstep(p_job jobs_internal.job, p_id integer, p_name text)
returns jobs_internal.job_step
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step job_step;
begin
    if p_id is null and p_name is null then
        perform raise_error('MU012', 'step_id', 'step_id or step_name is needed');
    end if;
    select * into step from job_step s
     where (s.job_id, s.version) = (p_job.job_id, p_job.version)
       and (p_id is null or s.step_id = p_id)
       and (p_name is null or lower(s.name) = lower(p_name));
    if not found then
        perform raise_error('MU010', case when p_name is null then 'step_id' else 'step_name' end,
            format('job "%s" has no step %s', p_job.name, concat_ws(' ', p_id, '"' || p_name || '"')));
    end if;
    return step;
end $$;
comment on function jobs_internal.find_jobstep(jobs_internal.job, integer, text) is
    'The current step with this number, this name or both.';
