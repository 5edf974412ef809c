-- for: engine
create or replace function jobs_internal.drain_hosts_v1(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform fence_v1(p_epoch);
    update host set state = 'draining' where state = 'live';
end $$;
comment on function jobs_internal.drain_hosts_v1(bigint) is
    'No host gets anything new; each ends when what it runs is over.';
