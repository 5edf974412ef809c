-- for: owner
create or replace function jobs_internal.auto_disable(p_job jobs_internal.job) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set lock_timeout = '500ms'
as $$
declare
    now constant timestamptz := clock_timestamp();
    policy constant jsonb := coalesce(p_job.auto_disable, (select i.auto_disable from instance i));
    health job_health;
    decision text;
begin
    if policy is null or not p_job.enabled or p_job.deleted_at is not null then
        return;
    end if;
    select * into health from job_health h where h.job_id = p_job.job_id;
    if not found then
        return;
    end if;
    decision := auto_disable_decision(policy, health.failures, health.since, now, health.warned_at is not null);
    if decision = 'disable' then
        begin
            perform from job j where j.job_id = p_job.job_id and j.enabled for no key update;
            if not found then
                return;
            end if;
        exception when lock_not_available then
            return;  -- a transaction that has locked the job may wait for the run: the next failure decides again
        end;
        update job j
           set enabled     = false,
               next_slot   = null,
               row_version = nextval('row_version'),
               modified_by = 'auto-disable',
               modified_at = now
         where j.job_id = p_job.job_id;
        update job_health h set disabled_at = now where h.job_id = p_job.job_id;
        perform write_audit('auto_disable', jsonb_build_object(
            'job_name', p_job.name, 'failures', health.failures, 'since', health.since));
    elsif decision = 'warn' then
        update job_health h set warned_at = now where h.job_id = p_job.job_id;
    else
        return;
    end if;
    insert into outbox (kind, job_id, notifications, payload)
    select w.kind, p_job.job_id, array[w.kind], jsonb_build_object(
               'jobName', p_job.name, 'failuresInARow', health.failures, 'since', iso_time(health.since))
      from (select case decision when 'disable' then 'autoDisabled' else 'autoDisableWarning' end as kind) w;
end $$;
comment on function jobs_internal.auto_disable(jobs_internal.job) is
    'Disables the schedule of a job, or writes the warning, when the policy of the job or account says so; the caller has '
    'counted the failure. A job whose schedule is disabled has nothing to disable.';
