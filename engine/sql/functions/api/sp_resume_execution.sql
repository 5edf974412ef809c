-- for: operator, admin
create or replace function jobs.sp_resume_execution(job_execution_id uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    step constant step_execution := halted_step(sp_resume_execution.job_execution_id);
begin
    update step_execution e
       set resumed_at    = clock_timestamp(),
           approved_wave = case when e.halted_at is null then e.wave + 1 else e.approved_wave end,
           halted_at     = null,
           halt_rule     = null,
           wait_reason   = null,
           not_before    = null,
           last_message  = 'Resumed.'
     where (e.run_day, e.job_execution_id) = (step.run_day, step.job_execution_id) and e.end_time is null
       and (e.step_id = step.step_id or e.halted_at is not null);
    update job_execution x
       set wait_reason  = null,
           last_message = 'Resumed.'
     where x.job_execution_id = step.job_execution_id;
    perform write_audit('sp_resume_execution', jsonb_build_object(
        'job_execution_id', step.job_execution_id, 'step_name', step.step_name, 'wave', step.wave,
        'halt_rule', step.halt_rule));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_resume_execution(uuid) is
    'Goes on with a run that is halted, or starts the next wave of one that waits for it. What failed before does not '
    'count any more for the limit that halted it.';
