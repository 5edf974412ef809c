-- for: engine
create or replace function jobs_internal.wait_for_wave(
    p_epoch bigint, p_run uuid, p_step_id integer, p_reason text, p_message text, p_until double precision
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update step_execution e
       set wait_reason  = p_reason,
           not_before   = to_timestamp(p_until),
           last_message = p_message
      from job_execution x
     where x.job_execution_id = p_run
       and (e.run_day, e.job_execution_id, e.step_id) = (x.run_day, p_run, p_step_id)
       and e.end_time is null;
    update job_execution x
       set wait_reason  = p_reason,
           last_message = p_message
     where x.job_execution_id = p_run;
end $$;
comment on function jobs_internal.wait_for_wave(bigint, uuid, integer, text, text, double precision) is
    'Records why the next wave of the step does not start yet. Repeating it is harmless.';
