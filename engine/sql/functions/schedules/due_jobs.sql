-- for: engine
create or replace function jobs_internal.due_jobs(p_epoch bigint, p_limit integer)
returns table (job_id uuid, job_name text, row_version bigint, interval_type text, interval_count integer, cron text,
               time_zone text, start_time timestamptz, end_time timestamptz, since timestamptz, misfire_policy text,
               misfire_within_seconds integer, last_slot timestamptz, now timestamptz)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    read_at constant timestamptz := clock_timestamp();
    first constant timestamptz := '0001-01-01 00:00:00+00';
    last constant timestamptz := '9999-12-31 11:59:59+00';
    due uuid[];
    new uuid[];
begin
    perform check_epoch(p_epoch);
    -- Jobs that another transaction has locked are skipped: that transaction may change the schedule.
    due := array(select j.job_id from job j
                  where j.next_slot <= read_at and j.enabled and not j.system
                  order by j.next_slot limit p_limit for share skip locked);
    new := array(select j.job_id from job j
                  where j.next_slot is null and j.enabled and j.deleted_at is null and not j.system
                  order by j.job_id limit p_limit for share skip locked);
    return query
    select j.job_id, j.name, j.row_version, j.schedule_interval_type, j.schedule_interval_count, j.schedule_cron,
           j.schedule_time_zone,
           -- Infinite times can't be decoded, which would lose all other rows.
           least(greatest(j.schedule_start_time, first), last),
           least(greatest(j.schedule_end_time, first), last),
           least(greatest(j.scheduled_since, first), last),
           j.misfire_policy, j.misfire_within_seconds,
           (select max(s.slot) from slot s
             where s.job_id = j.job_id and s.slot >= first and s.slot <= read_at),
           read_at
      from unnest(due || new) with ordinality one (job_id, place)
      join job j on j.job_id = one.job_id
     order by one.place;
end $$;
comment on function jobs_internal.due_jobs(bigint, integer) is
    'Jobs whose next slot is due or not computed, each with its schedule, the last decided slot and the database''s '
    'time.';
