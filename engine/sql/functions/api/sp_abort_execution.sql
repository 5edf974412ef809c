-- for: operator, admin
create or replace function jobs.sp_abort_execution(job_execution_id uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    step constant step_execution := halted_step(sp_abort_execution.job_execution_id);
begin
    update step_execution e
       set aborted_at   = clock_timestamp(),
           last_message = 'Aborted.'
     where (e.run_day, e.job_execution_id, e.step_id) = (step.run_day, step.job_execution_id, step.step_id);
    perform write_audit('sp_abort_execution', jsonb_build_object(
        'job_execution_id', step.job_execution_id, 'step_name', step.step_name, 'wave', step.wave,
        'halt_rule', step.halt_rule));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_abort_execution(uuid) is
    'Ends a run that is halted or waits for its next wave: targets that have not started end Canceled with the reason '
    'Halted, attempts that run end by themselves, and no further step follows.';
