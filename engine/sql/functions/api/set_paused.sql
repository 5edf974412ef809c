-- for: agent
create or replace function jobs_internal.set_paused(p_paused boolean) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- What changes nothing must not hold the table until a transaction of psql ends.
    if exists (select from instance where paused <> p_paused) then
        update instance set paused = p_paused;
        if not p_paused then
            -- A Once may have waited for this; what somebody is changing just now is found by the next look.
            update job
               set next_slot = null
             where job_id in (select j.job_id from job j
                               where j.next_slot <= clock_timestamp() + interval '1 minute'
                                 and j.schedule_type = 'Once' and j.enabled and not j.system
                                 for no key update skip locked);
        end if;
    end if;
    -- The engine and its hosts look at once, and not with their next heartbeat.
    perform pg_notify('muster_pause', '');
    return jsonb_build_object('paused', p_paused);
end $$;
comment on function jobs_internal.set_paused(boolean) is
    'Whether anything new may start; a Once that waited for it is looked at again.';
