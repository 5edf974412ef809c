-- for: agent
create or replace function jobs_internal.pause_and_cancel() returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    stopped integer := 0;
    run uuid;
begin
    perform sp_pause();
    for run in
        select x.job_execution_id
          from job_execution x
         where x.end_time is null and x.cancel_requested_at is null and x.lifecycle <> 'Created'
    loop
        perform sp_stop_job(run, 'The account was paused.');
        stopped := stopped + 1;
    end loop;
    return jsonb_build_object('paused', true, 'canceled', stopped);
end $$;
comment on function jobs_internal.pause_and_cancel() is
    'jobs.sp_pause for REST, and cancels what runs; runs that have not begun wait for jobs.sp_resume.';
