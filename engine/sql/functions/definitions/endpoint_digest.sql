-- for: owner
create or replace function jobs_internal.endpoint_digest(p_server jobs_internal.server_directory) returns text
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select encode(sha256(convert_to(jsonb_build_array(
               p_server.hosts, p_server.port, p_server.direct_host, p_server.ssl_mode, p_server.ca_certificate
           )::text, 'UTF8')), 'hex')
$$;
comment on function jobs_internal.endpoint_digest(jobs_internal.server_directory) is
    'Differs for different hosts, ports, TLS modes or CAs; a credential that lists the server is bound to it.';
