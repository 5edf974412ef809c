-- for: owner
create or replace function jobs_internal.get_current_step(p_run uuid, p_step text)
returns jobs_internal.step_execution
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
    step step_execution;
begin
    select * into run from job_execution x where x.job_execution_id = p_run;
    if not found then
        raise exception 'execution % was not found', p_run using errcode = 'MU010', column = 'job_execution_id';
    end if;
    select * into step from step_execution e
     where e.run_day = run.run_day and e.job_execution_id = p_run and lower(e.step_name) = lower(p_step)
       for no key update;
    if not found then
        raise exception 'execution % has no step "%", or has not reached it', p_run, p_step
            using errcode = 'MU010', column = 'step_name';
    elsif step.end_time is not null then
        raise exception 'step "%" of execution % has finished: %', step.step_name, p_run, step.lifecycle
            using errcode = 'MU013', column = 'step_name';
    end if;
    return step;
end $$;
comment on function jobs_internal.get_current_step(uuid, text) is
    'The step of a run, locked, if the run has entered it and it is unfinished.';
