-- for: engine
create or replace function jobs_internal.read_completions(p_epoch bigint, p_hosts uuid[], p_after bigint[])
returns table (host_id uuid, number bigint, report jsonb)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    -- Its own transaction, and all that it writes is what it forgets. Nobody waits for the disk: a crash brings back
    -- at most completions that the core names as known with every call, and a new core begins behind all there are.
    hurried constant text := set_config('synchronous_commit', 'off', true);
begin
    perform check_epoch(p_epoch);
    return query select * from next_completions(p_hosts, p_after);
end $$;
comment on function jobs_internal.read_completions(bigint, uuid[], bigint[]) is
    'What became of tasks behind the numbers that are known, of hosts that are not named from the beginning; '
    'what is known is forgotten.';
