-- for: admin
create or replace function jobs.sp_add_target_group_member(
    target_group_name text,
    membership_type text default 'Include',
    target_type text default null,
    refresh_credential_name text default null,
    server_name text default null,
    database_name text default null,
    elastic_pool_name text default null,
    out target_id uuid,
    shard_map_name text default null,
    schema_pattern text default null,
    query text default null,
    nested_group_name text default null,
    credential_name text default null,
    subscription_id text default null,
    resource_group_name text default null,
    labels text default null
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant target_group := lock_group(target_group_name);
begin
    perform add_members(edited.target_group_id, jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'membershipType', coalesce(membership_type, ''), 'type', target_type, 'serverName', nullif(server_name, ''),
        'databaseName', nullif(database_name, ''), 'elasticPoolName', nullif(elastic_pool_name, ''),
        'shardMapName', nullif(shard_map_name, ''), 'schemaPattern', nullif(schema_pattern, ''),
        'query', nullif(query, ''),
        'targetGroup', jsonb_build_object('name', nullif(nested_group_name, '')),
        'refreshCredential', jsonb_build_object('name', nullif(refresh_credential_name, '')),
        'credential', jsonb_build_object('name', nullif(credential_name, '')),
        'subscriptionId', nullif(subscription_id, ''), 'resourceGroupName', nullif(resource_group_name, ''),
        'labels', nullif(labels, '')))));
    select m.target_id into target_id
      from target_group_member m
     where m.target_group_id = edited.target_group_id
     order by m.position desc
     limit 1;
    perform bump_group_version(edited.target_group_id);
    perform write_audit('sp_add_target_group_member', jsonb_build_object(
        'target_group_name', edited.name, 'target_id', target_id, 'target_type', target_type,
        'server_name', server_name, 'database_name', database_name));
end $$;
comment on function jobs.sp_add_target_group_member(text, text, text, text, text, text, text, text, text, text, text,
                                                    text, text, text, text) is
    'Includes or excludes a server, pool, database, shard map, schema, query or another group. In database_name of a '
    'SqlDatabase or SqlSchema, * is any text and ? any letter; schema_pattern is a pattern of LIKE. labels of a SqlServer or SqlDatabase selects '
    'databases by their labels, as tier=gold,region in (eu,us).';
