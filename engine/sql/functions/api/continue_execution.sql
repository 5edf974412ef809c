-- for: agent
create or replace function jobs_internal.continue_execution(p_job text, p_execution uuid, p_abort boolean) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run(p_job, p_execution::text, false);
begin
    if p_abort then
        perform sp_abort_execution(run.job_execution_id);
    else
        perform sp_resume_execution(run.job_execution_id);
    end if;
    return jsonb_build_object('created', false, 'item', run_item(
        (select x from job_execution x where x.job_execution_id = run.job_execution_id)));
end $$;
comment on function jobs_internal.continue_execution(text, uuid, boolean) is
    'jobs.sp_resume_execution or jobs.sp_abort_execution for REST; returns the run.';
