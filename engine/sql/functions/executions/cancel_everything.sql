-- for: engine
create or replace function jobs_internal.cancel_everything(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    with asked as (
        update job_execution x
           set cancel_requested_at = clock_timestamp()
         where x.end_time is null
           and x.cancel_requested_at is null
        returning x.job_execution_id
    )
    insert into cancellation (job_execution_id, requested_by, door, reason)
    select a.job_execution_id, 'muster', 'engine', 'The account is going.' from asked a;
end $$;
comment on function jobs_internal.cancel_everything(bigint) is
    'Every run that nobody asked to stop yet is asked now: the account is going.';
