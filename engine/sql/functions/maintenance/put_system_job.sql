-- for: owner
create or replace function jobs_internal.put_system_job(p_old jobs_internal.job, p_must jsonb) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set lock_timeout = '1s'
as $$
declare
    now constant timestamptz := clock_timestamp();
    new constant job := jsonb_populate_record(p_old, jsonb_build_object(
        'version', coalesce(p_old.version, 0), 'created_by', coalesce(p_old.created_by, 'muster'),
        'created_at', coalesce(p_old.created_at, now), 'scheduled_since', now, 'next_slot', null,
        'row_version', nextval('row_version'), 'modified_by', 'muster', 'modified_at', now) || p_must);
begin
    -- Another transaction may have locked the job, or another job may have its name: the next call repairs it.
    perform lock_name('job', new.name);
    if p_old.job_id is null then
        insert into job select new.*;
    else
        update job j
           set name = new.name, description = new.description, version = new.version, enabled = new.enabled,
               schedule_type = new.schedule_type, schedule_interval_type = new.schedule_interval_type,
               schedule_interval_count = new.schedule_interval_count, schedule_interval = new.schedule_interval,
               schedule_cron = new.schedule_cron, schedule_time_zone = new.schedule_time_zone,
               schedule_start_time = new.schedule_start_time, schedule_end_time = new.schedule_end_time,
               scheduled_since = new.scheduled_since, next_slot = new.next_slot,
               misfire_policy = new.misfire_policy, misfire_within_seconds = new.misfire_within_seconds,
               overlap = new.overlap, paused = new.paused, priority = new.priority, owner = new.owner,
               labels = new.labels, retention_days = new.retention_days, system = new.system,
               deleted_at = new.deleted_at, row_version = new.row_version, modified_by = new.modified_by,
               modified_at = new.modified_at
         where j.job_id = new.job_id;
    end if;
    insert into job_version (job_id, version, created_by) values (new.job_id, new.version, 'muster')
    on conflict do nothing;
    return true;
exception when unique_violation or lock_not_available then
    return false;
end $$;
comment on function jobs_internal.put_system_job(jobs_internal.job, jsonb) is
    'Creates or repairs a system job; p_old is null for a missing one. False: another transaction has locked it.';
