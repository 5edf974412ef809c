-- for: reader, operator, admin
create or replace view jobs.target_groups as
select g.name as target_group_name, g.target_group_id, g.row_version, g.created_by, g.created_at,
       g.modified_by, g.modified_at
  from jobs_internal.target_group g;
comment on view jobs.target_groups is 'The target groups.';
comment on column jobs.target_groups.target_group_name is 'Unique without regard to case.';
comment on column jobs.target_groups.target_group_id is 'Stays when the members change.';
comment on column jobs.target_groups.row_version is 'The ETag; changes with the members.';
comment on column jobs.target_groups.created_by is 'The user who created it.';
comment on column jobs.target_groups.created_at is 'When it was created.';
comment on column jobs.target_groups.modified_by is 'The user who changed it last.';
comment on column jobs.target_groups.modified_at is 'When it was changed last.';
