-- for: owner
create or replace function jobs_internal.lock_dispatch() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    lock table dispatch_lock in share update exclusive mode;
end $$;
comment on function jobs_internal.lock_dispatch() is
    'No other transaction reserves tasks until this one ends: dispatches appear in the order of their numbers, and no '
    'waiting target is reserved while it is being ended.';
