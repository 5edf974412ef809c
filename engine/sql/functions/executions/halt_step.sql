-- for: engine
create or replace function jobs_internal.halt_step(
    p_epoch bigint, p_run uuid, p_step_id integer, p_rule text, p_message text
) returns setof uuid
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    run job_execution;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    perform lock_dispatch(), lock_reports();
    update step_execution e
       set halted_at    = now,
           halt_rule    = p_rule,
           -- No operator resumes a query.
           aborted_at   = case when (select j.system from job j where j.job_id = run.job_id) then now end,
           wait_reason  = 'Halted',
           last_message = p_message
     where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id)
       and e.end_time is null and e.halted_at is null;
    if not found then
        return;
    end if;
    update job_execution x
       set wait_reason  = 'Halted',
           last_message = p_message
     where x.job_execution_id = p_run;
    perform pg_notify('muster_execution', '');
    return query
    delete from task t
     where t.run_day = run.run_day and t.job_execution_id = p_run and t.step_id = p_step_id
       and t.lifecycle = 'Created'
    returning t.invocation_id;
end $$;
comment on function jobs_internal.halt_step(bigint, uuid, integer, text, text) is
    'Halts a step by a limit of its rollout or of the account, and deletes its reservations that have not started; '
    'returns their invocations. A query is aborted as well. Repeating it is harmless.';
