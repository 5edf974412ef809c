-- for: admin
create or replace function jobs.sp_delete_job(job_name text, force boolean default false) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    gone constant job := lock_job(job_name);
    running integer;
begin
    -- A start in another transaction has ended before, or finds no job.
    perform from job where job_id = gone.job_id for update;
    select count(*) into running from job_execution where job_id = gone.job_id and end_time is null;
    if running > 0 and force is not true then
        perform raise_error('MU013', 'job_name', format('job "%s" has %s running executions', gone.name, running),
            'Wait until they have finished, or delete with force => true, which cancels them.');
    end if;
    perform sp_stop_job(x.job_execution_id, 'The job was deleted.')
       from job_execution x
      where x.job_id = gone.job_id and x.end_time is null and x.cancel_requested_at is null;
    update job set deleted_at = clock_timestamp(), next_slot = null where job_id = gone.job_id;
    perform write_audit('sp_delete_job', jsonb_build_object('job_name', gone.name, 'force', force));
end $$;
comment on function jobs.sp_delete_job(text, boolean) is
    'Deletes a job, so that its name is free; its history is hidden until retention ends. force cancels running '
    'executions.';
