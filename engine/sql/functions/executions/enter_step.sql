-- for: engine
create or replace function jobs_internal.enter_step(p_epoch bigint, p_run uuid, p_step_id integer) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    begun constant text := begin_run(p_epoch, p_run);
    run job_execution;
begin
    if begun = 'Begun' then
        select * into strict run from job_execution x where x.job_execution_id = p_run;
        if not exists (select from step_execution e
                        where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id)) then
            perform create_step_execution(run, p_step_id);
        end if;
    end if;
    return begun;
end $$;
comment on function jobs_internal.enter_step(bigint, uuid, integer) is
    'Begins the run if it may begin, and creates the execution of this step; returns what begin_run returns. Repeating the '
    'call is harmless.';
