-- for: engine
create or replace function jobs_internal.group_document(p_group text) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    root target_group;
    groups jsonb;
begin
    select * into root from target_group g where lower(g.name) = lower(p_group);
    if not found and p_group is not null then
        raise exception 'target group "%" was not found', p_group using errcode = 'MU010';
    end if;
    with recursive inside (id) as (
        select root.target_group_id where root.target_group_id is not null
        union
        select m.nested_group_id
          from target_group_member m
          join inside i on m.target_group_id = i.id
         where m.nested_group_id is not null
    )
    select coalesce(jsonb_object_agg(i.id, jsonb_build_object('name', g.name, 'members', (
               select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                          'targetId', m.target_id, 'membershipType', m.membership_type, 'type', m.target_type,
                          'serverName', m.server_name, 'serverId', m.server_id, 'databaseName', m.database_name,
                          'elasticPoolName', m.elastic_pool_name, 'shardMapName', m.shard_map_name,
                          'schemaPattern', m.schema_pattern, 'query', m.query,
                          'targetGroupId', m.nested_group_id, 'refreshCredentialId', m.refresh_credential_id,
                          'credentialId', m.credential_id)) order by m.position), '[]')
                 from target_group_member m
                where m.target_group_id = i.id))), '{}')
      into groups
      from inside i
      join target_group g on g.target_group_id = i.id;
    return jsonb_build_object(
        'targetGroupId', coalesce(root.target_group_id, '00000000-0000-0000-0000-000000000000'),
        'identity', (select i.identity from instance i),
        'hash', encode(sha256(convert_to(groups::text, 'UTF8')), 'hex'),
        'groups', groups,
        'credentials', (
            select coalesce(jsonb_object_agg(c.credential_id, jsonb_build_object(
                       'name', c.name, 'username', c.username, 'secret', c.secret, 'servers', c.servers)), '{}')
              from credential c
             where exists (select from target_group_member m
                            where groups ? m.target_group_id::text
                              and c.credential_id in (m.refresh_credential_id, m.credential_id))
                or lower(c.name) in (select lower(s.job_credential) from server_directory s)),
        'directory', (
            select jsonb_build_object(
                       'revision', r.revision,
                       'servers', (select coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('endpoint_id', endpoint_digest(s))
                                                            order by s.server_id), '[]')
                                     from server_directory s))
              from directory_revision r));
end $$;
comment on function jobs_internal.group_document(text) is
    'All that resolving a group needs: it and the groups in it by id, the credentials, the servers, '
    'and the identity that sealed secrets are bound to. Without a group: the servers, for targets that a caller named.';
