-- for: operator, admin
create or replace function jobs.sp_stop_job(job_execution_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    run job_execution;
    who record;
begin
    perform check_reason(sp_stop_job.reason);
    select * into run from job_execution x
     where x.job_execution_id = sp_stop_job.job_execution_id for no key update;
    if not found then
        raise exception 'execution % was not found', sp_stop_job.job_execution_id
            using errcode = 'MU010', column = 'job_execution_id';
    elsif run.end_time is not null then
        raise exception 'execution % has finished: %', run.job_execution_id, run.lifecycle
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    select * into who from current_actor();
    perform stop_run(run, who.caller, who.door, sp_stop_job.reason);
    perform write_audit('sp_stop_job', jsonb_build_object('job_execution_id', run.job_execution_id));
end $$;
comment on function jobs.sp_stop_job(uuid, text) is
    'Cancels a run: it ends as soon as its attempts have ended; a run that has not begun is Canceled at once.';
