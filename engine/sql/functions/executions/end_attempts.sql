-- for: engine
create or replace function jobs_internal.end_attempts(
    p_epoch bigint, p_run uuid, p_newly_succeeded integer, p_remaining integer, p_limit text, p_message text
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update run_attempt a
       set newly_succeeded = p_newly_succeeded,
           remaining       = p_remaining,
           reached_limit   = p_limit,
           message         = p_message
     where a.job_execution_id = p_run and a.end_time is null;
end $$;
comment on function jobs_internal.end_attempts(bigint, uuid, integer, integer, text, text) is
    'Records why no attempt follows the running one; it ends with the run. Repeating the call is harmless.';
