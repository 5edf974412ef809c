-- for: owner
create or replace function jobs_internal.credential_servers(p_names text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_names is null or p_names = array['*'] then
        return null;
    elsif coalesce(cardinality(p_names), 0) = 0 then
        perform raise_error('MU012', 'servers', 'servers names at least one server, or * alone for any server');
    end if;
    return (select jsonb_agg(distinct jsonb_build_object('serverId', s.server_id, 'endpoint', endpoint_digest(s)))
              from unnest(p_names) n (name)
              join server_directory s on s.server_id = find_server(n.name, 'servers'));
end $$;
comment on function jobs_internal.credential_servers(text[]) is
    'The servers with these names as a credential lists them, each bound to its present endpoint; null = any.';
