-- for: owner
create or replace function jobs_internal.write_run_event(
    p_old jobs_internal.job_execution, p_new jobs_internal.job_execution
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    kind constant text := case when p_new.end_time is not null then 'runEnded'
                               when p_old.lifecycle = 'Created' then 'runStarted'
                               when p_new.lifecycle = 'WaitingForRetry' then 'runWaiting' end;
    of_job job;
    failures integer := 0;
    notifications text[] := '{}';
begin
    if kind is null then
        return;
    end if;
    select * into of_job from job j where j.job_id = p_new.job_id;
    if kind = 'runEnded' and not of_job.system then
        if p_new.lifecycle in ('Succeeded', 'SucceededWithSkipped') then
            delete from job_health h where h.job_id = p_new.job_id returning h.failures into failures;
            notifications := case when failures > 0 then '{succeeded,recovered}' else '{succeeded}' end;
        elsif p_new.lifecycle in ('Failed', 'TimedOut') then
            failures := count_failure(p_new);
            notifications := '{failed}';
        end if;
    end if;
    insert into outbox (kind, job_id, job_execution_id, notifications, payload)
    values (kind, p_new.job_id, p_new.job_execution_id, notifications, jsonb_strip_nulls(jsonb_build_object(
        'jobName', of_job.name, 'jobVersion', p_new.job_version, 'lifecycle', p_new.lifecycle, 'origin', p_new.origin,
        'slot', iso_time(p_new.slot), 'createTime', iso_time(p_new.create_time),
        'startTime', iso_time(p_new.start_time), 'endTime', iso_time(p_new.end_time),
        'notBefore', iso_time(p_new.not_before), 'endReason', p_new.end_reason,
        'lastMessage', left(p_new.last_message, 500), 'failuresInARow', nullif(failures, 0))));
    -- After the row about the run, so that the events are in the order in which a reader expects them.
    if 'failed' = any(notifications) then
        perform auto_disable(of_job);
    end if;
end $$;
comment on function jobs_internal.write_run_event(jobs_internal.job_execution, jobs_internal.job_execution) is
    'Writes that a run has started, waits for its next attempt or has ended; counts failures in a row of its job.';
