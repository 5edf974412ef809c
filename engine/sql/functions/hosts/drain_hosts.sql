-- for: engine
create or replace function jobs_internal.drain_hosts(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update host set state = 'draining' where state = 'live';
end $$;
comment on function jobs_internal.drain_hosts(bigint) is
    'No host gets new tasks; each ends when its tasks are finished.';
