-- for: agent
create or replace function jobs_internal.cancel_execution(p_job text, p_execution uuid, p_reason text) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run(p_job, p_execution::text, false);
begin
    perform sp_stop_job(run.job_execution_id, p_reason);
    return (select jsonb_build_object('canceled', x.end_time is not null)
              from job_execution x where x.job_execution_id = run.job_execution_id);
end $$;
comment on function jobs_internal.cancel_execution(text, uuid, text) is
    'jobs.sp_stop_job for REST; returns whether the run has finished already.';
