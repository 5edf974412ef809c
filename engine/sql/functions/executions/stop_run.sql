-- for: owner
create or replace function jobs_internal.stop_run(
    p_run jobs_internal.job_execution, p_by text, p_door text, p_reason text
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    at_once constant boolean := p_run.lifecycle = 'Created' and not exists (
        select from step_execution s
         where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id));
begin
    insert into cancellation (job_execution_id, requested_by, door, reason, requested_at, completed_at, cancel_method)
    values (p_run.job_execution_id, p_by, p_door, p_reason, now,
            case when at_once then now end, case when at_once then 'nothing' end);
    if at_once then
        update job_execution x
           set lifecycle           = 'Canceled',
               cancel_requested_at = now,
               end_time            = now,
               wait_reason         = null,
               end_reason          = 'Canceled',
               last_message        = 'Canceled before it started.'
         where x.job_execution_id = p_run.job_execution_id;
    else
        update job_execution x
           set cancel_requested_at = coalesce(x.cancel_requested_at, now)
         where x.job_execution_id = p_run.job_execution_id;
    end if;
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs_internal.stop_run(jobs_internal.job_execution, text, text, text) is
    'Requests the cancellation of a run, which the caller has locked; a run that has not begun is Canceled at once.';
