-- for: agent
create or replace function jobs_internal.set_paused_v1(p_paused boolean) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- What changes nothing must not hold the table until a transaction of psql ends.
    if exists (select from instance where paused <> p_paused) then
        update instance set paused = p_paused;
    end if;
    -- The engine and its hosts look at once, and not with their next heartbeat.
    perform pg_notify('muster_pause', '');
    return jsonb_build_object('paused', p_paused);
end $$;
comment on function jobs_internal.set_paused_v1(boolean) is 'Whether anything new may start.';
