-- for: owner
create or replace function jobs_internal.write_step_event(
    p_old jobs_internal.step_execution, p_new jobs_internal.step_execution
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- One change of a row may be several events.
    insert into outbox (kind, job_id, job_execution_id, notifications, payload)
    select k.kind, j.job_id, p_new.job_execution_id,
           case when k.kind = 'stepHalted' and not j.system then '{halted}'::text[] else '{}' end,
           jsonb_strip_nulls(jsonb_build_object(
               'jobName', j.name, 'stepId', p_new.step_id, 'stepName', p_new.step_name, 'lifecycle', p_new.lifecycle,
               -- How many waves there are is known once the targets are.
               'wave', p_new.wave, 'waves', case when p_new.snapshot_id is not null then p_new.waves end, 'haltRule', p_new.halt_rule, 'endReason', p_new.end_reason,
               'lastMessage', left(nullif(p_new.last_message, ''), 500)))
      from (values
            (1, 'stepStarted', p_old.step_id is null),
            (2, 'stepResumed', p_old.halted_at is not null and p_new.halted_at is null),
            (3, 'waveStarted', p_old.wave <> p_new.wave),
            (4, 'stepHalted', p_old.step_id is not null and p_old.halted_at is null and p_new.halted_at is not null),
            (5, 'stepEnded', p_old.step_id is not null and p_old.end_time is null and p_new.end_time is not null)
           ) k (place, kind, holds)
      join job_execution x on x.job_execution_id = p_new.job_execution_id
      join job j on j.job_id = x.job_id
     where k.holds
     order by k.place;
end $$;
comment on function jobs_internal.write_step_event(jobs_internal.step_execution, jobs_internal.step_execution) is
    'Writes that a step has started, opened a wave, was halted or resumed, or has ended; p_old is null for a new step.';
