-- for: operator, admin
create or replace function jobs.sp_retry_target(job_execution_id uuid, step_name text, target_id uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    to_rerun constant text := 'Start a rerun with this target: jobs.sp_rerun_execution, or muster run rerun.';
    run job_execution;
    step step_execution;
    target target_execution;
    place integer;
    refusal text;
    advice text;
begin
    select * into run from job_execution x
     where x.job_execution_id = sp_retry_target.job_execution_id for no key update;
    if not found then
        raise exception 'execution % was not found', sp_retry_target.job_execution_id
            using errcode = 'MU010', column = 'job_execution_id';
    elsif run.end_time is not null then
        perform raise_error('MU017', 'job_execution_id', format('execution %s has finished: %s', run.job_execution_id,
                                                                run.lifecycle), to_rerun, 'ExecutionNotRetryable');
    elsif (select j.system from job j where j.job_id = run.job_id) then
        raise exception 'execution % is a query of Muster itself and is not retried', run.job_execution_id
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    perform lock_dispatch();
    select * into step from step_execution e
     where (e.run_day, e.job_execution_id) = (run.run_day, run.job_execution_id)
       and lower(e.step_name) = lower(sp_retry_target.step_name) for no key update;
    if not found then
        raise exception 'execution % has no step "%", or has not reached it', run.job_execution_id,
              sp_retry_target.step_name using errcode = 'MU010', column = 'step_name';
    elsif step.end_time is not null then
        perform raise_error('MU017', 'step_name', format('step "%s" of execution %s has finished: %s', step.step_name,
                                                         run.job_execution_id, step.lifecycle), to_rerun,
                            'ExecutionNotRetryable');
    elsif coalesce(run.cancel_requested_at, step.cancel_requested_at, step.aborted_at) is not null then
        perform raise_error('MU017', 'step_name', format('step "%s" of execution %s is being %s', step.step_name,
            run.job_execution_id, case when step.aborted_at is null then 'canceled' else 'aborted' end),
            'Wait for its end. ' || to_rerun, 'ExecutionNotRetryable');
    end if;
    place := (select d.ordinal from snapshot_target d
               where (d.snapshot_id, d.target_id) = (step.snapshot_id, sp_retry_target.target_id));
    select * into target from target_execution x
     where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
           = (run.run_day, run.job_execution_id, step.step_id, place) for no key update;
    if not found then
        raise exception 'step "%" of execution % has no target %', step.step_name, run.job_execution_id,
              sp_retry_target.target_id using errcode = 'MU010', column = 'target_id';
    elsif target.end_time is null then
        refusal := 'has not finished: ' || target.lifecycle;
        advice := 'Only a target that has ended without success is retried.';
    elsif target.lifecycle = 'Succeeded' then
        refusal := 'has succeeded';
        advice := 'To run the step there again, ' || lower(left(to_rerun, 1)) || substring(to_rerun from 2);
    elsif exists (select from cancellation c
                   where (c.job_execution_id, c.step_id, c.ordinal)
                         = (run.job_execution_id, step.step_id, place) and c.completed_at is null) then
        refusal := 'is being canceled';
        advice := 'Try again in a moment.';
    elsif target.end_reason = 'PreviousStepNotSucceeded' then
        refusal := 'was skipped, because the step before has not succeeded on it';
        advice := 'Retry it in that step: it then goes on to this one. If that step has finished, start a rerun.';
    elsif exists (
            select from step_execution e
              join snapshot_target d on (d.snapshot_id, d.target_id) = (e.snapshot_id, sp_retry_target.target_id)
              join target_execution x
                on (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                   = (e.run_day, e.job_execution_id, e.step_id, d.ordinal)
             where (e.run_day, e.job_execution_id) = (run.run_day, run.job_execution_id) and e.step_id > step.step_id
               and x.end_reason is distinct from 'PreviousStepNotSucceeded'
               and (x.lifecycle <> 'Created'
                    or (select s.options ->> 'onFailure' = 'continue' from job_step s
                         where (s.job_id, s.version, s.step_id) = (run.job_id, run.job_version, step.step_id)))) then
        refusal := 'has gone on to a later step';
        advice := 'Wait for the end of the run. ' || to_rerun;
    end if;
    if refusal is not null then
        perform raise_error('MU017', 'target_id', format('target %s %s', sp_retry_target.target_id, refusal), advice,
                            'ExecutionNotRetryable');
    end if;
    perform retry_targets(run.job_execution_id, step.step_id, array[place]);
    perform write_audit('sp_retry_target', jsonb_build_object(
        'job_execution_id', run.job_execution_id, 'step_name', step.step_name, 'target_id', sp_retry_target.target_id,
        'lifecycle', target.lifecycle, 'end_reason', target.end_reason));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_retry_target(uuid, text, uuid) is
    'Retries a step of a live run on one target that ended there without success, also with an unknown outcome: it waits '
    'like a target that has not started, with all attempts and the whole timeout of the step. Its earlier attempts are '
    'kept.';
