-- for: engine
create or replace function jobs_internal.heartbeat(
    p_epoch bigint,
    out paused boolean, out draining boolean, out schema_version integer, out directory_revision bigint
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update instance i
       set heartbeat_at = clock_timestamp()
     where i.epoch = p_epoch and i.released_at is null
    returning i.paused, i.draining, i.schema_version into paused, draining, schema_version;
    if not found then
        raise exception 'epoch % is not in charge', p_epoch using errcode = 'MU001';
    end if;
    select r.revision into directory_revision from directory_revision r;
end $$;
comment on function jobs_internal.heartbeat(bigint) is
    'Records a heartbeat of the engine; returns the state that the engine must follow. A stale epoch fails.';
