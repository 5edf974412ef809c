-- for: agent
create or replace function jobs_internal.read_epoch() returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    found_hosts jsonb;
    busy bigint;
    answer jsonb;
begin
    select coalesce(jsonb_agg(jsonb_build_object(
               'host_id', h.host_id, 'adopted_epoch', h.adopted_epoch, 'host_name', h.host_name,
               'slots', h.slots, 'running', h.running, 'state', h.state,
               'heartbeat_at', h.heartbeat_at) order by h.registered_at, h.host_id), '[]'),
           coalesce(sum(h.running), 0)
      into found_hosts, busy
      from host h
     where h.state <> 'gone';
    select jsonb_build_object(
               'account_uid', i.account_uid, 'identity', i.identity,
               'database_oid', (select d.oid::bigint from pg_database d where d.datname = current_database()),
               'epoch', i.epoch, 'generation', i.generation, 'schema_version', i.schema_version,
               'min_engine_version', i.min_engine_version, 'workload_id', i.workload_id,
               'host_name', i.host_name, 'version', i.version, 'started_at', i.started_at,
               'heartbeat_at', i.heartbeat_at, 'read_at', clock_timestamp(),
               'paused', i.paused, 'draining', i.draining, 'drained', i.draining and busy = 0,
               'directory_revision', (select r.revision from directory_revision r),
               'hosts', found_hosts)
      into answer
      from instance i;
    return answer;
end $$;
comment on function jobs_internal.read_epoch() is
    'The epoch in charge, when it began and when its engine last sent a heartbeat, by this database''s clock.';
