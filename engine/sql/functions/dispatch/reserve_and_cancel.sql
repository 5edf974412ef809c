-- for: engine
create or replace function jobs_internal.reserve_and_cancel(
    p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[],
    p_attempts integer[], p_invocations uuid[], p_cancel_hosts uuid[], p_cancels uuid[]
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform reserve_tasks(p_epoch, p_hosts, p_run_days, p_runs, p_steps, p_ordinals, p_attempts, p_invocations, '{}',
                             p_cancel_hosts, p_cancels);
end $$;
comment on function jobs_internal.reserve_and_cancel(
    bigint, uuid[], date[], uuid[], integer[], integer[], integer[], uuid[], uuid[], uuid[]) is
    'Reserves tasks for hosts and sends hosts the running tasks to cancel, as reserve_tasks does.';
