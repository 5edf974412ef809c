-- for: engine
create or replace function jobs_internal.begin_step_v1(p_epoch bigint, p_run uuid, p_step_id integer) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
begin
    perform fence_v1(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    if exists (select from step_execution e
                where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id)) then
        return;
    end if;
    perform make_step_v1(run, p_step_id);
end $$;
comment on function jobs_internal.begin_step_v1(bigint, uuid, integer) is
    'The run has reached this step of its version; again is harmless.';
