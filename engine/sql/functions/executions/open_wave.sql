-- for: engine
create or replace function jobs_internal.open_wave(p_epoch bigint, p_run uuid, p_step_id integer, p_wave integer)
returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update step_execution e
       set wave         = p_wave,
           wait_reason  = null,
           not_before   = null,
           last_message = format('Wave %s of %s started.', p_wave, e.waves)
      from job_execution x
     where x.job_execution_id = p_run
       and (e.run_day, e.job_execution_id, e.step_id) = (x.run_day, p_run, p_step_id)
       and e.end_time is null;
    update job_execution x
       set wait_reason = null
     where x.job_execution_id = p_run and x.wait_reason is not null;
end $$;
comment on function jobs_internal.open_wave(bigint, uuid, integer, integer) is
    'The targets of this wave of the step may start. Repeating it is harmless.';
