-- for: engine
create or replace function jobs_internal.end_last_step(
    p_epoch bigint, p_run uuid, p_step_id integer, out step text, out run text
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- In the order in which a retry of its targets takes the locks.
    perform from job_execution x where x.job_execution_id = p_run for no key update;
    step := end_step(p_epoch, p_run, p_step_id);
    if step is not null then
        run := end_run(p_epoch, p_run);
    end if;
end $$;
comment on function jobs_internal.end_last_step(bigint, uuid, integer) is
    'Ends the last step of a run, and the run; returns both lifecycles, or null while a target is unfinished. '
    'Repeating the call is harmless.';
