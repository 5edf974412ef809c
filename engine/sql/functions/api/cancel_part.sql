-- for: agent
create or replace function jobs_internal.cancel_part(
    p_job text, p_execution uuid, p_step text, p_target text, p_reason text
) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run(p_job, p_execution::text, false);
    step constant step_execution := find_step(run, p_step);
    one record;
begin
    if p_target is null then
        perform sp_stop_step(run.job_execution_id, step.step_name, p_reason);
        return jsonb_build_object('canceled', (find_step(run, p_step)).end_time is not null);
    end if;
    select * into one from find_target(step, p_target);
    perform sp_stop_target(run.job_execution_id, step.step_name, (one.described).target_id, p_reason);
    select * into one from find_target(step, p_target);
    return jsonb_build_object('canceled', (one.target).end_time is not null);
end $$;
comment on function jobs_internal.cancel_part(text, uuid, text, text, text) is
    'jobs.sp_stop_step or, where a target is named, jobs.sp_stop_target for REST; returns whether that part has '
    'finished already.';
