-- for: admin
create or replace function jobs.sp_add_job(
    job_name text,
    description text default null,
    enabled boolean default false,
    schedule_interval_type text default null,
    schedule_interval_count integer default 1,
    schedule_start_time timestamptz default '0001-01-01 00:00:00+00',
    schedule_end_time timestamptz default '9999-12-31 11:59:59+00',
    out job_id uuid,
    schedule_cron text default null,
    schedule_time_zone text default null,
    misfire_policy text default 'runOnce',
    misfire_within_seconds integer default null,
    overlap text default 'skipTarget',
    paused boolean default false,
    priority integer default 0,
    owner text default null,
    labels jsonb default '{}',
    retention_days integer default null,
    run_attempts jsonb default null
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    new job;
begin
    new.name := job_name;
    new.description := coalesce(description, '');
    new.enabled := enabled;
    new.schedule_interval_type := coalesce(schedule_interval_type, 'Once');
    new.schedule_interval_count := schedule_interval_count;
    new.schedule_start_time := schedule_start_time;
    new.schedule_end_time := schedule_end_time;
    new.schedule_cron := nullif(schedule_cron, '');
    new.schedule_time_zone := nullif(schedule_time_zone, '');
    new.misfire_policy := misfire_policy;
    new.misfire_within_seconds := nullif(misfire_within_seconds, -1);
    new.overlap := overlap;
    new.paused := paused;
    new.priority := priority;
    new.owner := nullif(owner, '');
    new.labels := labels;
    new.retention_days := nullif(retention_days, -1);
    new.run_attempts := nullif(run_attempts, '{}');
    new := save_job('sp_add_job', null, new);
    job_id := new.job_id;
end $$;
comment on function jobs.sp_add_job(text, text, boolean, text, integer, timestamptz, timestamptz, text, text, text,
                                    integer, text, boolean, integer, text, jsonb, integer, jsonb) is
    'Creates a job without steps. A schedule takes effect only when enabled; jobs.sp_start_job always works. '
    'run_attempts, such as {"enabled": true}: a run repeats its targets that have not succeeded.';
