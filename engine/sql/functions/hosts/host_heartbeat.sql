-- for: engine
create or replace function jobs_internal.host_heartbeat(
    p_host uuid, p_running integer,
    out adopted_epoch bigint, out current_epoch bigint, out paused boolean, out draining boolean,
    out state text, out slots integer
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update host h
       set heartbeat_at = clock_timestamp(),
           running      = p_running
     where h.host_id = p_host and h.state <> 'gone'
    returning h.adopted_epoch, h.state, h.slots into adopted_epoch, state, slots;
    if not found then
        raise exception 'host % is not registered or has ended', p_host using errcode = 'MU004';
    end if;
    select i.epoch, i.paused, i.draining into current_epoch, paused, draining from instance i;
end $$;
comment on function jobs_internal.host_heartbeat(uuid, integer) is
    'Records a heartbeat of the host; returns the epoch that it writes with, the current epoch, its state and its '
    'slots.';
