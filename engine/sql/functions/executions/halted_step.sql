-- for: owner
create or replace function jobs_internal.halted_step(p_run uuid) returns jobs_internal.step_execution
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
    step step_execution;
begin
    select * into run from job_execution x where x.job_execution_id = p_run for no key update;
    if not found then
        raise exception 'execution % was not found', p_run using errcode = 'MU010', column = 'job_execution_id';
    elsif run.end_time is not null then
        raise exception 'execution % has ended: %', p_run, run.lifecycle
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    select * into step from step_execution e
     where e.run_day = run.run_day and e.job_execution_id = p_run and e.end_time is null
       and e.wait_reason in ('Halted', 'Gate', 'WavePause') and e.aborted_at is null
     order by e.step_id limit 1
       for no key update;
    if not found then
        raise exception 'execution % is neither halted nor between two waves', p_run
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    return step;
end $$;
comment on function jobs_internal.halted_step(uuid) is
    'The first step of a run that is halted or waits between two waves, locked with its run.';
