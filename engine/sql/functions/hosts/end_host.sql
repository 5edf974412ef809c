-- for: engine
create or replace function jobs_internal.end_host(p_host uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update host
       set state    = 'gone',
           running  = 0,
           ended_at = clock_timestamp()
     where host_id = p_host and state <> 'gone';
end $$;
comment on function jobs_internal.end_host(uuid) is
    'The host runs no tasks and will not come back. Repeating it is harmless.';
