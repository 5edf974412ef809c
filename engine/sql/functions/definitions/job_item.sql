-- for: owner
create or replace function jobs_internal.job_item(p_job jobs_internal.job) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return definition_item(
        array[p_job.name], p_job.job_id, p_job.row_version, p_job.created_by, p_job.created_at, p_job.modified_by,
        p_job.modified_at, jsonb_build_object(
            'description', p_job.description, 'version', p_job.version,
            'schedule', jsonb_build_object(
                'startTime', iso_time(p_job.schedule_start_time), 'endTime', iso_time(p_job.schedule_end_time),
                'type', p_job.schedule_type, 'enabled', p_job.enabled, 'since', iso_time(p_job.scheduled_since),
                'intervalType', p_job.schedule_interval_type, 'intervalCount', p_job.schedule_interval_count,
                'misfire', jsonb_strip_nulls(jsonb_build_object(
                    'policy', p_job.misfire_policy, 'withinSeconds', p_job.misfire_within_seconds)),
                'overlap', p_job.overlap)
                || jsonb_strip_nulls(jsonb_build_object(
                    'cron', p_job.schedule_cron, 'timeZone', p_job.schedule_time_zone,
                    'interval', coalesce(p_job.schedule_interval, case p_job.schedule_interval_type
                        when 'Minutes' then format('PT%sM', p_job.schedule_interval_count)
                        when 'Hours' then format('PT%sH', p_job.schedule_interval_count)
                        when 'Days' then format('P%sD', p_job.schedule_interval_count)
                        when 'Weeks' then format('P%sW', p_job.schedule_interval_count)
                        when 'Months' then format('P%sM', p_job.schedule_interval_count) end))),
            'paused', p_job.paused, 'priority', p_job.priority, 'owner', p_job.owner, 'labels', p_job.labels,
            'retentionDays', p_job.retention_days, 'runAttempts', p_job.run_attempts)
            || jsonb_strip_nulls(jsonb_build_object(
                'nextRunTime', case when p_job.enabled and not p_job.paused then iso_time(nullif(
                    case when p_job.schedule_type = 'Once' and p_job.next_slot is distinct from 'infinity'
                         then greatest(p_job.schedule_start_time, p_job.scheduled_since) else p_job.next_slot end,
                    'infinity')) end,
                'lastRun', (
                    select jsonb_build_object('jobExecutionId', x.job_execution_id, 'lifecycle', x.lifecycle,
                                              'createTime', iso_time(x.create_time), 'endTime', iso_time(x.end_time))
                      from job_execution x
                     where x.job_id = p_job.job_id
                     order by x.create_time desc, x.job_execution_id desc
                     limit 1),
                'autoDisable', p_job.auto_disable, 'health', (
                select jsonb_strip_nulls(jsonb_build_object(
                           'failuresInARow', h.failures, 'since', iso_time(h.since), 'warnedAt', iso_time(h.warned_at),
                           'disabledAt', iso_time(h.disabled_at), 'disabledReason', case when h.disabled_at is not null
                               then format('The schedule was disabled: %s runs in a row failed, with no success since '
                                           '%s. Enable it to count from 0 again.', h.failures,
                                           iso_time(date_trunc('second', h.since))) end))
                  from job_health h
                 where h.job_id = p_job.job_id))));
end $$;
comment on function jobs_internal.job_item(jobs_internal.job) is 'A job as the node agent reads it.';
