-- for: owner
create or replace function jobs_internal.find_step(p_run jobs_internal.job_execution, p_step text)
returns jobs_internal.step_execution
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step step_execution;
begin
    select s.* into step
      from step_execution s
     where s.run_day = p_run.run_day
       and s.job_execution_id = p_run.job_execution_id
       and lower(s.step_name) = lower(p_step);
    if not found then
        raise exception 'execution % has no step "%"', p_run.job_execution_id, p_step using errcode = 'MU010';
    end if;
    return step;
end $$;
comment on function jobs_internal.find_step(jobs_internal.job_execution, text) is
    'The step of a run that a path names.';
