-- for: agent
create or replace function jobs_internal.set_draining(p_draining boolean) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    busy bigint;
begin
    -- A call that changes nothing must not lock the table until a transaction of psql ends.
    if exists (select from instance where draining <> p_draining) then
        update instance set draining = p_draining;
        perform pg_notify('muster_pause', '');
    end if;
    select coalesce(sum(running), 0) into busy from host where state <> 'gone';
    return jsonb_build_object('draining', p_draining, 'running', busy);
end $$;
comment on function jobs_internal.set_draining(boolean) is
    'Marks the account as being deleted: nothing starts any more. Returns how many tasks still run.';
