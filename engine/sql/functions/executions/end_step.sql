-- for: engine
create or replace function jobs_internal.end_step(
    p_epoch bigint, p_run uuid, p_step_id integer, p_reason text default null, p_message text default null
) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    run job_execution;
    step step_execution;
    counts jsonb;
    unfinished bigint;
    reasons jsonb;
    outcome text;
    reason text;
    message text;
    affected numeric; -- a sum may exceed bigint
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run;
    select * into strict step from step_execution e
     where e.run_day = run.run_day and e.job_execution_id = p_run and e.step_id = p_step_id for no key update;
    if step.end_time is not null then
        return step.lifecycle;
    end if;
    select sum(t.unfinished), jsonb_object_agg(t.lifecycle, t.number), jsonb_object_agg(t.lifecycle, t.reason),
           sum(t.affected) filter (where t.lifecycle = 'Succeeded')
      into unfinished, counts, reasons, affected
      from (select t.lifecycle, count(*) as number, count(*) filter (where t.end_time is null) as unfinished,
                   sum(t.rows_affected) as affected,
                   case when min(t.end_reason) = max(t.end_reason) and count(t.end_reason) = count(*)
                        then min(t.end_reason) end as reason
              from target_execution t
             where t.run_day = run.run_day and t.job_execution_id = p_run and t.step_id = p_step_id
             group by t.lifecycle) t;
    if unfinished > 0 then
        return null;
    elsif step.lifecycle = 'WaitingForRetry' and coalesce(step.cancel_requested_at, run.cancel_requested_at) is not null then
        outcome := 'Canceled';
        reason := 'Canceled';
        message := 'Canceled while it waited for the next attempt of the run.';
    elsif counts is not null then
        outcome := parent_lifecycle(coalesce(step.cancel_requested_at, run.cancel_requested_at) is not null, counts);
        reason := reasons ->> outcome;
        message := summary_sentence('targets', counts);
        -- It explains why there are more targets at the end than at the beginning.
        message := concat_ws(' ', message, (
            select 'Listed while the step ran: ' || string_agg(
                       format('%s (attempts: %s, targets: %s)',
                              concat_ws('/', j ->> 'serverName', j ->> 'databaseName'), j ->> 'attempts', j ->> 'targets'),
                       ', ' order by n) || case when count(*) = 10 then ', …' else '' end || '.'
              from snapshot s
             cross join lateral jsonb_array_elements(s.joined) with ordinality j (j, n)
             where s.snapshot_id = step.snapshot_id and n <= 10));
    elsif p_reason is not null then
        outcome := 'Failed';
        reason := p_reason;
        message := p_message;
    elsif coalesce(step.cancel_requested_at, run.cancel_requested_at) is not null then
        outcome := 'Canceled';
        reason := 'Canceled';
        message := 'Canceled before it had targets.';
    elsif run.rerun_of is not null then
        outcome := 'Skipped';
        message := 'None of the chosen targets belongs to this step.';
    elsif (select (s.options ->> 'allowEmpty')::boolean from job_step s
            where (s.job_id, s.version, s.step_id) = (run.job_id, run.job_version, p_step_id)) then
        outcome := 'Succeeded';
        message := 'There were no targets.';
    else
        outcome := 'Failed';
        reason := 'NoTargets';
        message := 'The target group has no targets.';
    end if;
    update step_execution e
       set lifecycle    = outcome,
           end_time     = clock_timestamp(),
           wait_reason  = null,
           not_before   = null,
           end_reason   = reason,
           last_message = coalesce(message, e.last_message),
           rows_affected = case when affected is not null then least(affected, 9223372036854775807) end
     where e.run_day = run.run_day and e.job_execution_id = p_run and e.step_id = p_step_id;
    return outcome;
end $$;
comment on function jobs_internal.end_step(bigint, uuid, integer, text, text) is
    'Ends the step with the lifecycle that follows from its targets, or as Failed for the reason why it has none; '
    'null while a target is unfinished. Repeating the call is harmless.';
