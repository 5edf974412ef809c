-- for: owner
create or replace function jobs_internal.member_items(p_group uuid) returns jsonb
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'targetId', m.target_id, 'membershipType', m.membership_type, 'type', m.target_type,
               'serverName', m.server_name, 'databaseName', m.database_name, 'elasticPoolName', m.elastic_pool_name,
               'shardMapName', m.shard_map_name, 'schemaPattern', m.schema_pattern, 'query', m.query,
               'subscriptionId', m.subscription_id, 'resourceGroupName', m.resource_group_name,
               'labels', m.labels)) || n.named
               order by m.position), '[]')
      from target_group_member m
      left join target_group g on g.target_group_id = m.nested_group_id
      left join credential r on r.credential_id = m.refresh_credential_id
      left join credential c on c.credential_id = m.credential_id
      cross join lateral (
          select coalesce(jsonb_object_agg(v.field, jsonb_build_object('name', v.name, 'asGiven', v.given)), '{}')
            from (values ('targetGroup', g.name, m.nested_group_as_given),
                         ('refreshCredential', r.name, m.refresh_as_given),
                         ('credential', c.name, m.credential_as_given)) v (field, name, given)
           where v.name is not null) n (named)
     where m.target_group_id = p_group
$$;
comment on function jobs_internal.member_items(uuid) is 'The members of a target group as REST shows them.';
