-- for: owner
create or replace function jobs_internal.add_members(
    p_group uuid, p_members jsonb, p_old jsonb default '[]', p_old_servers jsonb default '{}'
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    here integer;
    last integer;
    added integer;
begin
    select count(*), coalesce(max(m.position), 0) into here, last
      from target_group_member m where m.target_group_id = p_group;
    if here + jsonb_array_length(p_members) > 10000 then
        perform raise_error('MU016', 'target_group_name', 'a target group has at most 10000 members',
            'Take in whole servers or pools, or nest groups.');
    end if;
    perform check_members(p_members, p_old);
    with new_member as materialized (
        select m.doc, m.place, member_key(m.doc) as key
          from jsonb_array_elements(p_members) with ordinality m (doc, place)
    ), old as materialized (
        select (m ->> 'targetId')::uuid as target_id, member_key(m) as key from jsonb_array_elements(p_old) m
    )
    insert into target_group_member (
        target_group_id, target_id, position, membership_type, target_type, server_name, server_id, database_name,
        elastic_pool_name, shard_map_name, schema_pattern, query, nested_group_id, nested_group_as_given,
        refresh_credential_id, refresh_as_given, credential_id, credential_as_given, subscription_id,
        resource_group_name, labels)
    select p_group, coalesce(o.target_id, gen_random_uuid()), last + m.place,
           coalesce(m.doc ->> 'membershipType', 'Include'), m.doc ->> 'type', m.doc ->> 'serverName',
           coalesce(s.server_id, p_old_servers ->> lower(m.doc ->> 'serverName')), m.doc ->> 'databaseName',
           m.doc ->> 'elasticPoolName', m.doc ->> 'shardMapName', m.doc ->> 'schemaPattern', m.doc ->> 'query',
           g.target_group_id, m.doc #>> '{targetGroup,asGiven}', r.credential_id,
           m.doc #>> '{refreshCredential,asGiven}', c.credential_id, m.doc #>> '{credential,asGiven}',
           m.doc ->> 'subscriptionId', m.doc ->> 'resourceGroupName', m.doc ->> 'labels'
      from new_member m
      left join old o on o.key = m.key
      left join server_names() s on s.name = lower(m.doc ->> 'serverName')
      left join target_group g on lower(g.name) = lower(m.doc #>> '{targetGroup,name}')
      left join credential r on lower(r.name) = lower(m.doc #>> '{refreshCredential,name}')
      left join credential c on lower(c.name) = lower(m.doc #>> '{credential,name}')
     order by m.place
    on conflict do nothing;
    get diagnostics added = row_count;
    if added < jsonb_array_length(p_members) then
        select min(n) into added from generate_series(1, jsonb_array_length(p_members)) n
         where not exists (select from target_group_member m
                            where m.target_group_id = p_group and m.position = last + n);
        perform raise_error('MU011', 'target_group_name', 'the group has this member already'
            || case when jsonb_array_length(p_members) > 1 then format(' (member %s)', added) else '' end);
    end if;
end $$;
comment on function jobs_internal.add_members(uuid, jsonb, jsonb, jsonb) is
    'Appends members to a locked group; a member that equals a removed one gets its target_id. Each means '
    'the server that has its server_name now; one that has left the directory is still the one of p_old_servers.';
