-- for: owner
create or replace function jobs_internal.find_attempt(p_run jobs_internal.job_execution, p_path text[])
returns jobs_internal.task
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step constant step_execution := find_step(p_run, p_path[3]);
    found_target record;
    task task;
begin
    select * into found_target from find_target(step, p_path[4]);
    select k.* into task
      from task k
     where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
           = (step.run_day, step.job_execution_id, step.step_id, (found_target.target).ordinal)
       and k.attempt::text = p_path[5]
       and k.start_time is not null;
    if task.attempt is null then
        raise exception 'target % has no attempt %', p_path[4], p_path[5] using errcode = 'MU010';
    end if;
    return task;
end $$;
comment on function jobs_internal.find_attempt(jobs_internal.job_execution, text[]) is
    'The attempt that a path names; a reservation is none.';
