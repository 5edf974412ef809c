-- for: agent
create or replace function jobs_internal.set_paused(p_paused boolean) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- A call that changes nothing must not lock the table until a transaction of psql ends.
    if exists (select from instance where paused <> p_paused) then
        update instance set paused = p_paused;
        if not p_paused then
            -- Jobs of type Once may have waited for this; the next call finds jobs that another transaction has locked.
            update job
               set next_slot = null
             where job_id in (select j.job_id from job j
                               where j.next_slot <= clock_timestamp() + interval '1 minute'
                                 and j.schedule_type = 'Once' and j.enabled and not j.system
                                 for no key update skip locked);
        end if;
    end if;
    -- The engine and its hosts read the change at once, not with their next heartbeat.
    perform pg_notify('muster_pause', '');
    return jsonb_build_object('paused', p_paused);
end $$;
comment on function jobs_internal.set_paused(boolean) is
    'Sets whether tasks may start; jobs of type Once that waited for that are looked at again.';
