-- for: owner
create or replace function jobs_internal.step_of_results(p_run jobs_internal.job_execution, p_step text)
returns jobs_internal.step_execution
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step step_execution;
begin
    if p_step is not null then
        return find_step(p_run, p_step);
    end if;
    if (select count(*) from step_execution s
         where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id)) > 1 then
        perform raise_error('MU012', 'step', 'the execution has several steps: name one');
    end if;
    select s.* into step from step_execution s
     where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id);
    return step;
end $$;
comment on function jobs_internal.step_of_results(jobs_internal.job_execution, text) is
    'The step whose results are read: the named one, or the only one that the run has entered; null before the first.';
