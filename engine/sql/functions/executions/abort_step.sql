-- for: engine
create or replace function jobs_internal.abort_step(p_epoch bigint, p_run uuid, p_step_id integer) returns setof integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
    ended bigint;
begin
    perform check_epoch(p_epoch);
    perform lock_dispatch(), lock_reports();
    delete from task t
     where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id and t.lifecycle = 'Created';
    return query
    update target_execution x
       set lifecycle    = 'Canceled',
           end_time     = now,
           not_before   = null,
           wait_reason  = null,
           end_reason   = 'Halted',
           last_message = concat_ws(' ', 'The rollout was aborted.', 'Last error: ' || nullif(x.last_message, ''))
     where x.run_day = day and x.job_execution_id = p_run and x.step_id = p_step_id and x.end_time is null
       and not exists (select from task t
                        where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                              = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                          and t.lifecycle = 'InProgress')
    returning x.ordinal;
    get diagnostics ended = row_count;
    perform write_target_event(p_run, p_step_id, 'Canceled', ended);
end $$;
comment on function jobs_internal.abort_step(bigint, uuid, integer) is
    'Ends the targets of an aborted step on which no attempt runs, and returns them. Repeating it is harmless.';
