-- for: engine
create or replace function jobs_internal.repair_system_jobs(p_epoch bigint)
returns table (job_name text, differed jsonb, repaired boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set timezone = 'UTC'
as $$
#variable_conflict use_column
declare
    wanted record;
    old job;
    must jsonb;
begin
    perform check_epoch(p_epoch);
    for wanted in select * from system_job_definitions() loop
        must := jsonb_build_object(
            'job_id', wanted.job_id, 'name', wanted.name, 'description', wanted.description,
            'enabled', wanted.interval_type is not null,
            'schedule_type', case when wanted.interval_type is null then 'Once' else 'Recurring' end,
            'schedule_interval_type', coalesce(wanted.interval_type, 'Once'),
            'schedule_interval_count', coalesce(wanted.interval_count, 1),
            'schedule_interval', null, 'schedule_cron', null, 'schedule_time_zone', null,
            'schedule_start_time', '0001-01-01 00:00:00+00'::timestamptz,
            'schedule_end_time', '9999-12-31 11:59:59+00'::timestamptz,
            'misfire_policy', 'runOnce', 'misfire_within_seconds', null, 'overlap', wanted.overlap,
            'paused', false, 'priority', 0, 'owner', null, 'labels', '{}'::jsonb,
            'retention_days', wanted.retention_days, 'system', true, 'deleted_at', null)
            -- A system job with an interval has no steps.
            || case when wanted.interval_type is null then '{}' else '{"version": 0}'::jsonb end;
        select * into old from job j where j.job_id = wanted.job_id;
        if old.job_id is null then
            differed := '{"job": "missing"}';
        else
            select coalesce(jsonb_object_agg(m.key, left(coalesce(to_jsonb(old) ->> m.key, 'null'), 200)), '{}')
              into differed
              from jsonb_each(must) m
             where to_jsonb(old) -> m.key is distinct from m.value;
            if old.next_slot > clock_timestamp()
                               + (wanted.interval_count || ' ' || wanted.interval_type)::interval
               or (old.next_slot is not null and wanted.interval_type is null) then
                differed := differed || jsonb_build_object('next_slot', old.next_slot);
            end if;
        end if;
        continue when differed = '{}';
        job_name := wanted.name;
        repaired := put_system_job(old, must);
        if repaired then
            perform write_audit('repair_system_job', jsonb_build_object('job_name', wanted.name, 'differed', differed));
        end if;
        return next;
    end loop;
end $$;
comment on function jobs_internal.repair_system_jobs(bigint) is
    'Repairs the system jobs; returns the difference of each that was changed, and whether it could be repaired.';
