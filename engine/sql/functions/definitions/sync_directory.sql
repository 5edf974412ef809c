-- for: agent
create or replace function jobs_internal.sync_directory(
    p_revision bigint, p_servers jsonb, p_same_error_limit integer, p_run_attempts jsonb
) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    here bigint;
begin
    select revision into here from directory_revision for update;
    if here >= p_revision then
        return jsonb_build_object('applied', false, 'revision', here);
    end if;
    delete from server_directory s
     where not exists (select from jsonb_array_elements(p_servers) g where g ->> 'server_id' = s.server_id);
    insert into server_directory as s (
        server_id, name, hosts, port, ssl_mode, ca_certificate, pooling, direct_host, target_session_attrs,
        maintenance_database, max_connections, connections_per_second, slots_per_database, pools, labels,
        worker_pool, job_credential, disabled, client_certificate, client_key, client_key_fingerprint, database_labels,
        revision)
    select g.server_id, g.name, g.hosts, g.port, g.ssl_mode, g.ca_certificate, g.pooling, g.direct_host,
           g.target_session_attrs, g.maintenance_database, g.max_connections, g.connections_per_second,
           g.slots_per_database, g.pools, g.labels, g.worker_pool, g.job_credential, g.disabled,
           g.client_certificate, g.client_key, g.client_key_fingerprint,
           coalesce(g.database_labels, '{}'), p_revision
      from jsonb_populate_recordset(null::server_directory, p_servers) g
    on conflict (server_id) do update
       set name = excluded.name, hosts = excluded.hosts, port = excluded.port, ssl_mode = excluded.ssl_mode,
           ca_certificate = excluded.ca_certificate, pooling = excluded.pooling,
           direct_host = excluded.direct_host, target_session_attrs = excluded.target_session_attrs,
           maintenance_database = excluded.maintenance_database,
           max_connections = excluded.max_connections,
           connections_per_second = excluded.connections_per_second,
           slots_per_database = excluded.slots_per_database, pools = excluded.pools,
           labels = excluded.labels, worker_pool = excluded.worker_pool,
           job_credential = excluded.job_credential, disabled = excluded.disabled,
           client_certificate = excluded.client_certificate,
           client_key = excluded.client_key, client_key_fingerprint = excluded.client_key_fingerprint,
           database_labels = excluded.database_labels, revision = excluded.revision
           -- Sealing a key twice gives different texts: only the fingerprint shows whether the key changed.
     where to_jsonb(s) - array['revision', 'client_key'] <> to_jsonb(excluded) - array['revision', 'client_key'];
    update instance i
       set same_error_limit = p_same_error_limit,
           run_attempts     = p_run_attempts
     where (i.same_error_limit, i.run_attempts) <> (p_same_error_limit, p_run_attempts);
    update directory_revision set revision = p_revision, synced_at = clock_timestamp();
    return jsonb_build_object('applied', true, 'revision', p_revision);
end $$;
comment on function jobs_internal.sync_directory(bigint, jsonb, integer, jsonb) is
    'Replaces the servers of the directory, the limit of equal errors and the rules of run attempts; a revision that is not newer changes nothing.';
