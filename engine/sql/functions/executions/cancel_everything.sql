-- for: engine
create or replace function jobs_internal.cancel_everything(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    with updated_run as (
        update job_execution x
           set cancel_requested_at = clock_timestamp()
         where x.end_time is null
           and x.cancel_requested_at is null
        returning x.job_execution_id
    )
    insert into cancellation (job_execution_id, requested_by, door, reason)
    select a.job_execution_id, 'muster', 'engine', 'The account is going.' from updated_run a;
end $$;
comment on function jobs_internal.cancel_everything(bigint) is
    'Requests the cancellation of every run that has none yet: the account is being deleted.';
