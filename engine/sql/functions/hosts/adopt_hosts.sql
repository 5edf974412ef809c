-- for: engine
create or replace function jobs_internal.adopt_hosts(p_epoch bigint, p_slots integer)
returns table (host_id uuid, epoch bigint, host_name text, pid integer, slots integer, state text,
               heartbeat_at timestamptz)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    -- One statement, so that every returned host is adopted, unless it has just ended. If nothing differs, nothing is
    -- written, and the commit waits for no disk.
    return query
    with adopted as (
        update host h
           set adopted_epoch = p_epoch,
               slots         = p_slots
         where h.state <> 'gone'
           and (h.adopted_epoch, h.slots) is distinct from (p_epoch, p_slots)
    )
    select h.host_id, h.epoch, h.host_name, h.pid, p_slots, h.state, h.heartbeat_at
      from host h
     where h.state <> 'gone';
end $$;
comment on function jobs_internal.adopt_hosts(bigint, integer) is
    'Every host that is not gone belongs to this epoch from now on, with its tasks, and has this number of slots.';
