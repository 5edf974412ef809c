-- for: owner
create or replace function jobs_internal.resolution_document(p_group_id uuid, p_groups jsonb) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return jsonb_build_object(
        'targetGroupId', p_group_id,
        'identity', (select i.identity from instance i),
        'hash', encode(group_hash(p_groups), 'hex'),
        'groups', p_groups,
        'credentials', (
            select coalesce(jsonb_object_agg(c.credential_id, jsonb_build_object(
                       'name', c.name, 'username', c.username, 'secret', c.secret, 'servers', c.servers)), '{}')
              from credential c
             where c.credential_id::text in (
                       select n.id
                         from jsonb_each(p_groups) g
                        cross join lateral jsonb_array_elements(g.value -> 'members') m (doc)
                        cross join lateral (values (m.doc ->> 'refreshCredentialId'), (m.doc ->> 'credentialId')) n (id)
                        where n.id is not null)
                or lower(c.name) in (select lower(s.job_credential) from server_directory s)),
        'directory', (
            select jsonb_build_object(
                       'revision', r.revision,
                       'servers', (select coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('endpoint_id', endpoint_digest(s))
                                                            order by s.server_id), '[]')
                                     from server_directory s))
              from directory_revision r));
end $$;
comment on function jobs_internal.resolution_document(uuid, jsonb) is
    'All that resolving groups with this definition needs: the groups by id, the credentials, the servers, and the '
    'identity that sealed secrets are bound to.';
