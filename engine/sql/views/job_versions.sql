-- for: reader, operator, admin
create or replace view jobs.job_versions as
select j.name as job_name, j.job_id, v.version as job_version, v.created_by, v.created_at
  from jobs_internal.job j
  join jobs_internal.job_version v on v.job_id = j.job_id
 where j.deleted_at is null and not j.system;
comment on view jobs.job_versions is 'Every state that the steps of a job ever had.';
comment on column jobs.job_versions.job_name is 'The job.';
comment on column jobs.job_versions.job_id is 'The job.';
comment on column jobs.job_versions.job_version is 'From 0.';
comment on column jobs.job_versions.created_by is 'The user whose change created it.';
comment on column jobs.job_versions.created_at is 'When it was created.';
