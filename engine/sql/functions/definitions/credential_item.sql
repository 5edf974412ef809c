-- for: owner
create or replace function jobs_internal.credential_item(p_credential jobs_internal.credential) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_credential.servers is null then
        return '{}';
    end if;
    return (select jsonb_build_object(
                       'servers', coalesce(jsonb_agg(s.name order by s.name) filter (where s.name is not null), '[]'),
                       'lapsedServers', coalesce(jsonb_agg(l.entry ->> 'serverId' order by l.entry ->> 'serverId')
                                                 filter (where s.name is null), '[]'))
              from jsonb_array_elements(p_credential.servers) l (entry)
              left join server_directory s
                     on s.server_id = l.entry ->> 'serverId' and endpoint_digest(s) = l.entry ->> 'endpoint');
end $$;
comment on function jobs_internal.credential_item(jobs_internal.credential) is
    'The servers that a credential is for, and those whose endpoint has changed since they were listed.';
