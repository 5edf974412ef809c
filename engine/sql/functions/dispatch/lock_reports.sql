-- for: owner
create or replace function jobs_internal.lock_reports() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    lock table report_lock in exclusive mode;
end $$;
comment on function jobs_internal.lock_reports() is
    'Waits for the reports of hosts that are being written, and lets no other begin until the transaction ends: tasks '
    'can be taken from hosts.';
