-- for: owner
create or replace function jobs_internal.check_job(p_old jobs_internal.job, p_new jobs_internal.job) returns void
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong record;
begin
    if p_old.name is null or p_new.name is distinct from p_old.name then
        perform check_name(p_new.name, case when p_old.name is null then 'job_name' else 'new_name' end);
        if exists (select from system_job_definitions() s where lower(s.name) = lower(p_new.name)) then
            perform raise_error('MU011', case when p_old.name is null then 'job_name' else 'new_name' end,
                format('the name "%s" is reserved for a system job', p_new.name), 'Choose another name.');
        end if;
    end if;
    select r.field, r.meaning into wrong
      from (values
        (char_length(p_new.description) <= 512, 'description', 'has at most 512 characters'),
        (p_new.enabled is not null, 'enabled', 'is true or false'),
        (p_new.schedule_interval_type in ('Once', 'Minutes', 'Hours', 'Days', 'Weeks', 'Months'),
         'schedule_interval_type', 'is Once, Minutes, Hours, Days, Weeks or Months'),
        (p_new.schedule_interval_count between 1 and 1000000,
         'schedule_interval_count', 'is a number from 1 to 1000000'),
        (p_new.schedule_cron is null or p_new.schedule_interval_type = 'Once',
         'schedule_cron', 'takes the place of schedule_interval_type: give one of them'),
        (p_new.schedule_time_zone is null or p_new.schedule_cron is not null,
         'schedule_time_zone', 'belongs to schedule_cron: give both'),
        (p_new.schedule_start_time >= '0001-01-01 00:00:00+00', 'schedule_start_time', 'is from the year 1 on'),
        (p_new.schedule_end_time < '10000-01-01 00:00:00+00', 'schedule_end_time', 'is up to the year 9999'),
        (p_new.schedule_start_time < p_new.schedule_end_time, 'schedule_end_time', 'is after schedule_start_time'),
        (p_new.misfire_policy in ('runOnce', 'skip'), 'misfire_policy', 'is runOnce or skip'),
        (coalesce(p_new.misfire_within_seconds, 0) >= 0,
         'misfire_within_seconds', 'is 0 or more, or -1 for the default'),
        (p_new.overlap in ('skipTarget', 'skipExecution', 'queueOne', 'allow', 'cancelPrevious'),
         'overlap', 'is skipTarget, skipExecution, queueOne, allow or cancelPrevious'),
        (p_new.paused is not null, 'paused', 'is true or false'),
        (char_length(coalesce(p_new.owner, '')) <= 256, 'owner', 'has at most 256 characters'),
        (jsonb_typeof(p_new.labels) = 'object' and not jsonb_path_exists(p_new.labels, '$.* ? (@.type() != "string")'),
         'labels', 'is a JSON object of texts'),
        (coalesce(p_new.retention_days, 1) between 1 and 36500,
         'retention_days', 'is a number from 1 to 36500, or -1 for the account''s default')
      ) r (holds, field, meaning)
     where r.holds is not true
     limit 1;
    if found then
        perform raise_error('MU012', wrong.field, wrong.field || ' ' || wrong.meaning);
    end if;
    if p_new.run_attempts is distinct from p_old.run_attempts then
        perform check_run_attempts(p_new.run_attempts);
    end if;
    if p_new.priority is distinct from 0 then
        perform raise_error('MU012', 'priority', 'a priority other than 0 is not supported by this version',
            'Leave it out.', 'OptionNotSupported');
    end if;
    if p_new.schedule_cron is not null and p_new.schedule_cron is distinct from p_old.schedule_cron then
        perform check_cron(p_new.schedule_cron);
    end if;
    if p_new.schedule_time_zone is not null and p_new.schedule_time_zone is distinct from p_old.schedule_time_zone
       and not exists (select from pg_timezone_names z
                        where z.name = p_new.schedule_time_zone
                          and z.name !~ '^(posix/|right/|localtime$|Factory$)') then
        perform raise_error('MU012', 'schedule_time_zone', 'schedule_time_zone is an IANA name such as Europe/Berlin');
    end if;
end $$;
comment on function jobs_internal.check_job(jobs_internal.job, jobs_internal.job) is
    'Raises unless the job is valid; p_old is null for a new job.';
