-- for: operator, admin
create or replace function jobs.sp_stop_step(job_execution_id uuid, step_name text, reason text default null)
returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    step constant step_execution := get_current_step(sp_stop_step.job_execution_id, sp_stop_step.step_name);
    who record;
begin
    perform check_reason(sp_stop_step.reason);
    update step_execution e
       set cancel_requested_at = coalesce(e.cancel_requested_at, now)
     where (e.run_day, e.job_execution_id, e.step_id) = (step.run_day, step.job_execution_id, step.step_id);
    select * into who from current_actor();
    insert into cancellation (job_execution_id, step_id, requested_by, door, reason, requested_at)
    values (step.job_execution_id, step.step_id, who.caller, who.door, sp_stop_step.reason, now);
    perform write_audit('sp_stop_step', jsonb_build_object(
        'job_execution_id', step.job_execution_id, 'step_name', step.step_name));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_stop_step(uuid, text, text) is
    'Cancels a step of a run: it ends as soon as its attempts have ended; the run continues as after a cancelled '
    'step.';
