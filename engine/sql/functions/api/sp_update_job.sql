-- for: admin
create or replace function jobs.sp_update_job(
    job_name text,
    new_name text default null,
    description text default null,
    enabled boolean default null,
    schedule_interval_type text default null,
    schedule_interval_count integer default null,
    schedule_start_time timestamptz default null,
    schedule_end_time timestamptz default null,
    schedule_cron text default null,
    schedule_time_zone text default null,
    misfire_policy text default null,
    misfire_within_seconds integer default null,
    overlap text default null,
    paused boolean default null,
    priority integer default null,
    owner text default null,
    labels jsonb default null,
    retention_days integer default null,
    run_attempts jsonb default null
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    old constant job := lock_job(job_name);
    new job := old;
begin
    new.name := coalesce(new_name, old.name);
    new.description := coalesce(description, old.description);
    new.enabled := coalesce(enabled, old.enabled);
    if schedule_interval_type is not null or schedule_interval_count is not null then
        new.schedule_interval := null;
    end if;
    -- An interval replaces cron, and cron an interval.
    new.schedule_cron := nullif(coalesce(
        schedule_cron, case when schedule_interval_type is null then old.schedule_cron end), '');
    new.schedule_time_zone := nullif(coalesce(schedule_time_zone, old.schedule_time_zone), '');
    new.schedule_interval_type := coalesce(
        schedule_interval_type, case when schedule_cron <> '' then 'Once' end, old.schedule_interval_type);
    new.schedule_interval_count := coalesce(schedule_interval_count, old.schedule_interval_count);
    new.schedule_start_time := coalesce(schedule_start_time, old.schedule_start_time);
    new.schedule_end_time := coalesce(schedule_end_time, old.schedule_end_time);
    new.misfire_policy := coalesce(misfire_policy, old.misfire_policy);
    new.misfire_within_seconds := nullif(coalesce(misfire_within_seconds, old.misfire_within_seconds), -1);
    new.overlap := coalesce(overlap, old.overlap);
    new.paused := coalesce(paused, old.paused);
    new.priority := coalesce(priority, old.priority);
    new.owner := nullif(coalesce(owner, old.owner), '');
    new.labels := coalesce(labels, old.labels);
    new.retention_days := nullif(coalesce(retention_days, old.retention_days), -1);
    new.run_attempts := nullif(coalesce(run_attempts, old.run_attempts), '{}');
    perform save_job('sp_update_job', old, new);
end $$;
comment on function jobs.sp_update_job(text, text, text, boolean, text, integer, timestamptz, timestamptz, text, text,
                                       text, integer, text, boolean, integer, text, jsonb, integer, jsonb) is
    'Changes the parameters that are passed; '''' empties a text, -1 a number, {} run_attempts.';
