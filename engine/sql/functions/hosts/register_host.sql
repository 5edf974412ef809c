-- for: engine
create or replace function jobs_internal.register_host(
    p_host uuid, p_epoch bigint, p_name text, p_pid integer, p_slots integer
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    insert into host as h (host_id, epoch, adopted_epoch, host_name, pid, slots)
    values (p_host, p_epoch, p_epoch, p_name, p_pid, p_slots)
    on conflict (host_id) do update
       set adopted_epoch = greatest(h.adopted_epoch, p_epoch),
           host_name     = p_name,
           pid           = p_pid,
           slots         = p_slots,
           heartbeat_at  = clock_timestamp()
     where h.state <> 'gone';
    if not found then
        raise exception 'host % has ended', p_host using errcode = 'MU004';
    end if;
end $$;
comment on function jobs_internal.register_host(uuid, bigint, text, integer, integer) is
    'Registers a host to which the current epoch may give tasks. Repeating it is harmless.';
