-- for: engine
create or replace function jobs_internal.reserve_and_poll(
    p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[],
    p_attempts integer[], p_invocations uuid[], p_slots uuid[], p_known_hosts uuid[], p_after bigint[]
) returns setof jobs_internal.completion
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform reserve_tasks(p_epoch, p_hosts, p_run_days, p_runs, p_steps, p_ordinals, p_attempts, p_invocations,
                             p_slots, '{}', '{}');
    return query select * from next_completions(p_known_hosts, p_after);
end $$;
comment on function jobs_internal.reserve_and_poll(
    bigint, uuid[], date[], uuid[], integer[], integer[], integer[], uuid[], uuid[], uuid[], bigint[]) is
    'Reserves tasks as reserve_tasks does, and returns what read_completions does, which saves the core a call.';
