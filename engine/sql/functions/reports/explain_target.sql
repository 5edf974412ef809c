-- for: owner
create or replace function jobs_internal.explain_target(
    p_run jobs_internal.job_execution, p_step text, p_target text
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step constant step_execution := find_step(p_run, p_step);
    now constant timestamptz := clock_timestamp();
    one record;
    t target_execution;
    live task;
    last task;
    held text;
    rejected text;
    refused_by_server boolean;
    error_text text;
    explanation jsonb;
begin
    select * into one from find_target(step, p_target);
    t := one.target;
    select k.* into live from task k
     where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
           = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
       and k.lifecycle in ('Created', 'InProgress');
    select k.* into last from task k
     where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
           = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
       and k.end_time is not null
     order by k.attempt desc limit 1;
    refused_by_server := t.wait_reason in ('ServerFull', 'ServerStarting');
    -- If the server refused the connection, the server's message is the newest.
    error_text := nullif(case when refused_by_server then coalesce(t.last_message, last.message)
                        else coalesce(last.message, t.last_message) end, '');
    select min(e.name) into rejected from private_endpoint e
     where lower(e.server_id) = lower((one.described).server_id) and e.status = 'Rejected';
    held := case when t.lifecycle in ('Created', 'WaitingForRetry') and step.halted_at is not null then 'Halted'
                 when t.wave > step.wave then 'Wave'
                 when (select i.paused from instance i) then 'AccountPaused'
                 when (select j.paused from job j where j.job_id = p_run.job_id) then 'JobPaused'
                 when rejected is not null or (select d.disabled from server_directory d
                        where d.server_id = (one.described).server_id) then 'ServerDisabled' end;
    explanation := case
        when t.repeatable and p_run.lifecycle = 'WaitingForRetry' then jsonb_build_object(
            'since', iso_time(t.end_time), 'waitReason', 'NextRunAttempt',
            'message', format('It ended as %s; attempt %s of the run takes it again at %s.%s', t.lifecycle,
                p_run.attempt + 1, iso_time(p_run.not_before), coalesce(' ' || error_text, '')))
        when t.end_time is not null then jsonb_build_object(
            'since', iso_time(t.end_time), 'message', format('It has finished: %s.%s', t.lifecycle,
                coalesce(' ' || nullif(coalesce(t.last_message, last.message), ''), '')))
        when live.disowned is not null then jsonb_build_object(
            'since', iso_time(live.start_time), 'waitReason', 'HostLost',
            'message', 'Its host was lost; the target is asked what became of the attempt.')
        when live.lifecycle = 'InProgress' then jsonb_build_object(
            'since', iso_time(live.start_time), 'message', case
                when t.cancel_requested_at is not null or step.cancel_requested_at is not null
                     or p_run.cancel_requested_at is not null then 'It runs and was asked to stop.'
                when t.phase = 'verify' then format('Attempt %s asks the verify query; the script is not repeated.',
                                                    live.attempt)
                when t.phase = 'output' then format('Attempt %s writes the output; the script is not repeated.',
                                                    live.attempt)
                else format('Attempt %s runs.', live.attempt) end)
        when live.lifecycle = 'Created' then jsonb_build_object(
            'since', iso_time(live.create_time), 'waitReason', 'Reserved',
            'message', 'A host has taken it and waits for a session at the server.'
                || case when refused_by_server and error_text is not null
                        then format(' Before, the server said: %s.', error_text)
                        else '' end)
        when held is not null then jsonb_build_object(
            'since', iso_time(coalesce(last.end_time, t.create_time)), 'waitReason', held, 'message', case held
                when 'Halted' then step.last_message
                    || ' Resume the run to go on, or abort it to end the targets that have not started.'
                when 'Wave' then format('It belongs to wave %s of %s; wave %s is open.', t.wave, step.waves, step.wave)
                    || case when step.wait_reason is null then '' else ' ' || step.last_message end
                when 'AccountPaused' then 'The account is paused.'
                when 'JobPaused' then 'The job is paused.'
                else case when rejected is null then format('The server %s is disabled.', (one.described).server_name)
                          else format('The private endpoint %s to the server %s was rejected.', rejected,
                                      (one.described).server_name) end end)
        when t.not_before > now then jsonb_build_object(
            'since', iso_time(coalesce(last.end_time, t.tried_at, t.create_time)),
            'waitReason', coalesce(t.wait_reason, 'Retry'),
            'message', format(case t.wait_reason
                when 'ServerFull' then 'Its server had no room for a connection; it is tried again at %s.%s'
                when 'ServerStarting' then 'Its server is starting, stopping or recovering; it is tried again at %s.%s'
                else 'It may start again at %s.%s' end, iso_time(t.not_before),
                coalesce(case when refused_by_server then ' The server said: ' || error_text || '.'
                              else ' ' || error_text end, ''))) end;
    return jsonb_build_object(
        'ask', case when explanation is null
                      or live.lifecycle = 'InProgress' and live.disowned is null then jsonb_build_object(
            'run', p_run.job_execution_id, 'stepId', t.step_id, 'ordinal', t.ordinal) end,
        'why', coalesce(explanation, jsonb_build_object(
            'since', iso_time(coalesce(t.not_before, last.end_time, t.create_time)), 'waitReason', t.wait_reason))
            || jsonb_build_object('lifecycle', t.lifecycle, 'cancellations', list_cancellations(p_run, t))
            || jsonb_build_object('details', jsonb_strip_nulls(jsonb_build_object(
                'endReason', t.end_reason, 'attempts', t.attempts, 'phase', t.phase, 'notBefore', iso_time(t.not_before),
                'wave', case when step.waves > 1 then t.wave end, 'haltRule', step.halt_rule, 'triedSince', iso_time(t.tried_at),
                'serverSaid', case when refused_by_server then error_text end,
                'hostId', live.host_id, 'backendPid', live.backend_pid,
                'cancelRequestedAt', iso_time(coalesce(t.cancel_requested_at, step.cancel_requested_at,
                                                     p_run.cancel_requested_at)),
                'lastAttempt', case when last.attempt is not null then jsonb_build_object(
                    'attempt', last.attempt, 'lifecycle', last.lifecycle, 'sqlstate', last.sqlstate,
                    'message', last.message, 'endTime', iso_time(last.end_time)) end))));
end $$;
comment on function jobs_internal.explain_target(jobs_internal.job_execution, text, text) is
    'The state of a target according to its rows: finished, running, or waiting with the reason, and its '
    'cancellations; and the request for the engine, which has the order of the queue and can read the state of '
    'running attempts.';
