-- for: agent
create or replace function jobs_internal.rerun_execution(p_job text, p_execution uuid, p_doc jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    origin constant job_execution := find_run(p_job, p_execution::text, false);
    rerun constant uuid := sp_rerun_execution(
        origin.job_execution_id,
        case when p_doc ? 'only' then array(select jsonb_array_elements_text(p_doc -> 'only'))
             else '{failed,timedOut}' end,
        case when p_doc ? 'targets' then array(select t::uuid from jsonb_array_elements_text(p_doc -> 'targets') t) end);
begin
    return jsonb_build_object('created', true, 'item', run_item(
        (select x from job_execution x where x.job_execution_id = rerun)));
end $$;
comment on function jobs_internal.rerun_execution(text, uuid, jsonb) is
    'jobs.sp_rerun_execution for REST; returns the new run.';
