-- for: owner
create or replace function jobs_internal.member_key(p_member jsonb) returns text
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select jsonb_build_array(
        coalesce(p_member ->> 'membershipType', 'Include'), p_member -> 'type', lower(p_member ->> 'serverName'),
        p_member -> 'databaseName', lower(p_member ->> 'elasticPoolName'), p_member -> 'shardMapName',
        p_member -> 'schemaPattern', p_member -> 'query', lower(p_member #>> '{targetGroup,name}'),
        p_member -> 'labels')::text
$$;
comment on function jobs_internal.member_key(jsonb) is 'Equal for two members that name the same targets.';
