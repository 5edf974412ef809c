-- for: owner
create or replace function jobs_internal.lock_dispatch() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('muster dispatch', 0));
end $$;
comment on function jobs_internal.lock_dispatch() is
    'Nobody else reserves tasks until the transaction ends: dispatches appear in the order of their numbers, and '
    'targets that wait are ended without one of them being reserved meanwhile.';
