-- for: engine
create or replace function jobs_internal.mark_host_draining(p_host uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update host set state = 'draining' where host_id = p_host and state = 'live';
end $$;
comment on function jobs_internal.mark_host_draining(uuid) is
    'The host gets no new tasks and ends when its tasks are finished. Repeating it is harmless.';
