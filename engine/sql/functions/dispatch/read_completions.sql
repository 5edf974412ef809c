-- for: engine
create or replace function jobs_internal.read_completions(p_epoch bigint, p_hosts uuid[], p_after bigint[])
returns setof jobs_internal.completion
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    -- The call only deletes completions that the core has read, so its commit need not wait for the disk: a crash brings
    -- back at most completions that the next call deletes again, and a new core begins after all existing ones.
    hurried constant text := set_config('synchronous_commit', 'off', true);
begin
    perform check_epoch(p_epoch);
    return query select * from next_completions(p_hosts, p_after);
end $$;
comment on function jobs_internal.read_completions(bigint, uuid[], bigint[]) is
    'The completions after the numbers that the caller has read; all completions of hosts that it does not name. '
    'Completions that it has read are deleted.';
