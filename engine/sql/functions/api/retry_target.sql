-- for: agent
create or replace function jobs_internal.retry_target(p_job text, p_execution uuid, p_step text, p_target text)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run(p_job, p_execution::text, false);
    step constant step_execution := find_step(run, p_step);
    one record;
begin
    select * into one from find_target(step, p_target);
    perform sp_retry_target(run.job_execution_id, step.step_name, (one.described).target_id);
    select * into one from find_target(step, p_target);
    return jsonb_build_object('created', false, 'item', target_item(run, step.step_name, one.target, one.described));
end $$;
comment on function jobs_internal.retry_target(text, uuid, text, text) is
    'jobs.sp_retry_target for REST; returns the target.';
