-- for: owner
create or replace function jobs_internal.create_step_execution(
    p_run jobs_internal.job_execution, p_step_id integer, p_snapshot_id uuid default null, p_waves integer default 1
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update job_execution x
       set lifecycle    = 'WaitingForChildJobExecutions',
           start_time   = coalesce(x.start_time, clock_timestamp()),
           wait_reason  = null,
           not_before   = null,
           last_message = case x.lifecycle when 'Created' then 'Job execution started.' else x.last_message end
     where x.job_execution_id = p_run.job_execution_id;
    perform start_run_attempt(p_run.job_execution_id);
    insert into step_execution (run_day, job_execution_id, step_id, step_name, content_hash, snapshot_id, lifecycle, waves)
    select p_run.run_day, p_run.job_execution_id, s.step_id, s.name, s.content_hash, p_snapshot_id,
           case when p_snapshot_id is null then 'Created' else 'WaitingForChildJobExecutions' end, p_waves
      from job_step s
     where (s.job_id, s.version, s.step_id) = (p_run.job_id, p_run.job_version, p_step_id);
    if not found then
        raise exception 'execution % has no step %', p_run.job_execution_id, p_step_id using errcode = 'MU013';
    end if;
end $$;
comment on function jobs_internal.create_step_execution(jobs_internal.job_execution, integer, uuid, integer) is
    'The run, which the caller has locked, has reached this step of its version; its targets are those of the snapshot.';
