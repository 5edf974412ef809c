-- for: owner
create or replace function jobs_internal.save_job(p_action text, p_old jobs_internal.job, p_new jobs_internal.job)
returns jobs_internal.job
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    who record;
begin
    if p_new.schedule_cron is null then
        p_new.schedule_time_zone := nullif(p_new.schedule_time_zone, p_old.schedule_time_zone);
    end if;
    p_new.schedule_type := case when p_new.schedule_interval_type = 'Once' and p_new.schedule_cron is null
                                then 'Once' else 'Recurring' end;
    if p_new is not distinct from p_old then
        return p_old;
    end if;
    perform check_job(p_old, p_new);
    select * into who from current_actor();
    p_new.modified_by := who.caller;
    p_new.modified_at := clock_timestamp();
    p_new.row_version := nextval('row_version');
    if (p_new.enabled, p_new.schedule_type, p_new.schedule_interval_type, p_new.schedule_interval_count,
        p_new.schedule_cron, p_new.schedule_time_zone, p_new.schedule_start_time, p_new.schedule_end_time)
       is distinct from
       (p_old.enabled, p_old.schedule_type, p_old.schedule_interval_type, p_old.schedule_interval_count,
        p_old.schedule_cron, p_old.schedule_time_zone, p_old.schedule_start_time, p_old.schedule_end_time) then
        p_new.scheduled_since := p_new.modified_at;
        p_new.next_slot := null;
    end if;
    if p_old.paused and not p_new.paused then
        p_new.next_slot := null; -- a job of type Once may have waited for this
    end if;
    if p_old.job_id is null then
        p_new.job_id := gen_random_uuid();
        p_new.version := 0;
        p_new.system := false;
        p_new.created_by := p_new.modified_by;
        p_new.created_at := p_new.modified_at;
        insert into job select p_new.*;
        insert into job_version (job_id, version, created_by) values (p_new.job_id, 0, who.caller);
    else
        update job
           set name = p_new.name, description = p_new.description, enabled = p_new.enabled,
               schedule_type = p_new.schedule_type, schedule_interval_type = p_new.schedule_interval_type,
               schedule_interval_count = p_new.schedule_interval_count, schedule_interval = p_new.schedule_interval,
               schedule_cron = p_new.schedule_cron, schedule_time_zone = p_new.schedule_time_zone,
               schedule_start_time = p_new.schedule_start_time, schedule_end_time = p_new.schedule_end_time,
               scheduled_since = p_new.scheduled_since, next_slot = p_new.next_slot,
               misfire_policy = p_new.misfire_policy, misfire_within_seconds = p_new.misfire_within_seconds,
               overlap = p_new.overlap, paused = p_new.paused, priority = p_new.priority, owner = p_new.owner,
               labels = p_new.labels, retention_days = p_new.retention_days, run_attempts = p_new.run_attempts,
               row_version = p_new.row_version, modified_by = p_new.modified_by, modified_at = p_new.modified_at
         where job_id = p_new.job_id;
    end if;
    perform write_audit(p_action, jsonb_build_object(
        'job_name', coalesce(p_old.name, p_new.name),
        'new_name', case when p_new.name <> p_old.name then p_new.name end));
    return p_new;
exception when unique_violation then
    perform raise_error('MU011', case when p_old.job_id is null then 'job_name' else 'new_name' end,
        format('there is already a job "%s"', p_new.name));
end $$;
comment on function jobs_internal.save_job(text, jobs_internal.job, jobs_internal.job) is
    'Creates or changes a job, for both doors; p_old is null for a new job. Writes nothing when nothing changes.';
