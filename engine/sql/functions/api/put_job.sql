-- for: agent
create or replace function jobs_internal.put_job(p_name text, p_doc jsonb, p_condition jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set timezone = 'UTC'
as $$
declare
    schedule constant jsonb := coalesce(nullif(p_doc -> 'schedule', 'null'), '{}');
    old job;
    new job;
begin
    perform lock_name('job', p_name);
    select * into old from job j where lower(j.name) = lower(p_name) and j.deleted_at is null for no key update;
    if found then
        old := lock_job(p_name);
    end if;
    perform check_condition(p_condition, old.row_version);
    new := old;
    new.name := coalesce(old.name, p_name);
    new.description := coalesce(p_doc ->> 'description', '');
    new.enabled := coalesce((schedule ->> 'enabled')::boolean, false);
    new.schedule_start_time := coalesce((schedule ->> 'startTime')::timestamptz, '0001-01-01 00:00:00+00');
    new.schedule_end_time := coalesce((schedule ->> 'endTime')::timestamptz, '9999-12-31 11:59:59+00');
    new.schedule_cron := nullif(schedule ->> 'cron', '');
    new.schedule_time_zone := nullif(schedule ->> 'timeZone', '');
    new.schedule_interval := nullif(schedule ->> 'interval', '');
    -- A client that sends back the unit which it has read does not ask for an interval.
    new.schedule_interval_type := case when schedule ->> 'type' = 'Once' or new.schedule_cron is not null then 'Once'
                                       else coalesce(schedule ->> 'intervalType', 'Once') end;
    new.schedule_interval_count := coalesce((schedule ->> 'intervalCount')::integer, 1);
    if new.schedule_interval is not null then
        select * into new.schedule_interval_type, new.schedule_interval_count
          from read_interval(new.schedule_interval);
    end if;
    if (schedule ->> 'type' = 'Once') <> (new.schedule_interval_type = 'Once' and new.schedule_cron is null) then
        perform raise_error('MU012', 'schedule_interval_type',
            'a schedule of type Once has neither interval nor cron, one of type Recurring has one of them');
    end if;
    new.misfire_policy := coalesce(schedule #>> '{misfire,policy}', 'runOnce');
    new.misfire_within_seconds := schedule #>> '{misfire,withinSeconds}';
    new.overlap := coalesce(schedule ->> 'overlap', 'skipTarget');
    new.paused := coalesce((p_doc ->> 'paused')::boolean, false);
    new.priority := coalesce((p_doc ->> 'priority')::integer, 0);
    new.owner := nullif(p_doc ->> 'owner', '');
    new.labels := coalesce(nullif(p_doc -> 'labels', 'null'), '{}');
    new.retention_days := p_doc ->> 'retentionDays';
    new.run_attempts := nullif(p_doc -> 'runAttempts', 'null');
    perform save_job(case when old.job_id is null then 'sp_add_job' else 'sp_update_job' end, old, new);
    return jsonb_build_object('created', old.job_id is null, 'item', get_item('jobs', array[p_name]));
end $$;
comment on function jobs_internal.put_job(text, jsonb, jsonb) is
    'Creates or replaces a job; fields that the document omits get their defaults. Steps do not change.';
