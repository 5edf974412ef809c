-- for: reader, operator, admin
create or replace view jobs.target_group_members as
select g.name as target_group_name, g.target_group_id, m.membership_type, m.target_type, m.target_id,
       r.name as refresh_credential_name, m.subscription_id, m.resource_group_name, m.server_name, m.database_name,
       m.elastic_pool_name, m.shard_map_name, m.schema_pattern, m.query, n.name as nested_group_name, m.nested_group_id,
       c.name as credential_name, m.position, m.labels
  from jobs_internal.target_group g
  join jobs_internal.target_group_member m on m.target_group_id = g.target_group_id
  left join jobs_internal.credential r on r.credential_id = m.refresh_credential_id
  left join jobs_internal.credential c on c.credential_id = m.credential_id
  left join jobs_internal.target_group n on n.target_group_id = m.nested_group_id;
comment on view jobs.target_group_members is 'What each target group includes or excludes.';
comment on column jobs.target_group_members.target_group_name is 'The group.';
comment on column jobs.target_group_members.target_group_id is 'The group.';
comment on column jobs.target_group_members.membership_type is 'Include or Exclude; an exclusion wins.';
comment on column jobs.target_group_members.target_type is
    'SqlServer, SqlElasticPool, SqlDatabase, SqlShardMap, SqlSchema, SqlQuery or TargetGroup.';
comment on column jobs.target_group_members.target_id is 'By which the member is deleted.';
comment on column jobs.target_group_members.refresh_credential_name is 'The credential that lists the databases.';
comment on column jobs.target_group_members.subscription_id is 'Of the server; null = the account''s.';
comment on column jobs.target_group_members.resource_group_name is 'Of the server; null = the account''s.';
comment on column jobs.target_group_members.server_name is
    'As given: short name, host name or <name>.database.windows.net.';
comment on column jobs.target_group_members.database_name is
    'The database, or of SqlDatabase and SqlSchema a pattern with * and ?; of SqlSchema null = every database.';
comment on column jobs.target_group_members.elastic_pool_name is 'The elastic pool.';
comment on column jobs.target_group_members.shard_map_name is
    'The relation that lists server_name, database_name and perhaps schema_name.';
comment on column jobs.target_group_members.schema_pattern is 'LIKE pattern of the schemas that are targets.';
comment on column jobs.target_group_members.query is
    'Yields server_name, database_name and perhaps schema_name; further columns become labels.';
comment on column jobs.target_group_members.nested_group_name is 'The group whose targets these are.';
comment on column jobs.target_group_members.nested_group_id is 'The group whose targets these are.';
comment on column jobs.target_group_members.credential_name is
    'The credential that runs steps on these targets when the step names none.';
comment on column jobs.target_group_members.position is 'The order of the members.';
comment on column jobs.target_group_members.labels is
    'Label selector of a SqlServer or SqlDatabase: only databases with such labels; null = all.';
