-- for: owner
create or replace function jobs_internal.check_members(p_members jsonb, p_old jsonb) returns void
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong record;
begin
    select m.place, r.field, r.meaning into wrong
      from jsonb_array_elements(p_members) with ordinality m (doc, place)
      left join (values
          ('SqlServer', array['serverName'], array['serverName', 'labels']),
          ('SqlElasticPool', array['serverName', 'elasticPoolName'], array['serverName', 'elasticPoolName']),
          ('SqlDatabase', array['serverName', 'databaseName'], array['serverName', 'databaseName', 'labels']),
          ('SqlShardMap', array['serverName', 'databaseName', 'shardMapName'],
                          array['serverName', 'databaseName', 'shardMapName']),
          ('SqlSchema', array['serverName', 'schemaPattern'], array['serverName', 'databaseName', 'schemaPattern']),
          ('SqlQuery', array['serverName', 'databaseName', 'query'], array['serverName', 'databaseName', 'query']),
          ('TargetGroup', array['targetGroup'], array['targetGroup']))
          t (type, needs, takes) on t.type = m.doc ->> 'type'
      cross join lateral (
          select 1 as rank, 'target_type' as field, 'target_type is SqlServer, SqlElasticPool, SqlDatabase, '
                 'SqlShardMap, SqlSchema, SqlQuery or TargetGroup' as meaning
           where t.type is null
          union all
          select 2, 'membership_type', 'membership_type is Include or Exclude'
           where coalesce(m.doc ->> 'membershipType', 'Include') not in ('Include', 'Exclude')
          union all
          select 3, f.field,
                 case when f.value is null then format('%s is needed for a %s', f.field, t.type)
                      when f.key <> all (t.takes) then format('%s does not belong to a %s', f.field, t.type)
                      else format('%s has 1 to %s bytes and no control characters', f.field, f.longest) end
            from (values ('serverName', 'server_name', m.doc ->> 'serverName', 253),
                         ('databaseName', 'database_name', m.doc ->> 'databaseName', 63),
                         ('elasticPoolName', 'elastic_pool_name', m.doc ->> 'elasticPoolName', 128),
                         ('shardMapName', 'shard_map_name', m.doc ->> 'shardMapName', 127),
                         ('schemaPattern', 'schema_pattern', m.doc ->> 'schemaPattern', 256),
                         ('query', 'query', m.doc ->> 'query', 65536),
                         ('labels', 'labels', m.doc ->> 'labels', 2048),
                         ('targetGroup', 'nested_group_name', m.doc #>> '{targetGroup,name}', 512)
                 ) f (key, field, value, longest)
           where (f.value is null and f.key = any (t.needs))
              or (f.value is not null and f.key <> all (t.takes))
              or octet_length(f.value) not between 1 and f.longest
              or (f.key <> 'query' and f.value ~ $r$[\u0001-\u001f\u007f-\u009f]$r$)
          union all
          select 4, n.field, format('%s "%s" was not found', n.kind, n.name)
            from (values ('nested_group_name', 'target group', m.doc #>> '{targetGroup,name}'),
                         ('refresh_credential_name', 'credential', m.doc #>> '{refreshCredential,name}'),
                         ('credential_name', 'credential', m.doc #>> '{credential,name}')) n (field, kind, name)
           where n.name is not null
             and not exists (select from credential c where n.kind = 'credential' and lower(c.name) = lower(n.name))
             and not exists (select from target_group g
                              where n.kind <> 'credential' and lower(g.name) = lower(n.name))
          union all
          select 5, 'labels', selector_error(m.doc ->> 'labels') where selector_error(m.doc ->> 'labels') is not null) r
     order by m.place, r.rank
     limit 1;
    if found then
        perform raise_error('MU012', wrong.field, wrong.meaning
            || case when jsonb_array_length(p_members) > 1 then format(' (member %s)', wrong.place) else '' end);
    end if;
    -- A member may keep a server that has left the directory.
    perform find_server(g.name)
       from (select m ->> 'serverName' as name from jsonb_array_elements(p_members) m
             except
             select m ->> 'serverName' from jsonb_array_elements(p_old) m) g
      where g.name is not null
        and lower(g.name) not in (select s.name from server_names() s);
end $$;
comment on function jobs_internal.check_members(jsonb, jsonb) is
    'Raises unless these are valid members of a target group that had the old ones.';
