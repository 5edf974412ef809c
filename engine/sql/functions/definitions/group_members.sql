-- for: owner
create or replace function jobs_internal.group_members(p_group_id uuid) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        with recursive inside (id) as (
            select p_group_id
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
                              'schemaPattern', m.schema_pattern, 'query', m.query, 'labels', m.labels,
                              'targetGroupId', m.nested_group_id, 'refreshCredentialId', m.refresh_credential_id,
                              'credentialId', m.credential_id)) order by m.position), '[]')
                     from target_group_member m
                    where m.target_group_id = i.id))), '{}')
          from inside i
          join target_group g on g.target_group_id = i.id);
end $$;
comment on function jobs_internal.group_members(uuid) is
    'The group and the groups in it, by id, with their members: the definition that group_hash is made of.';
