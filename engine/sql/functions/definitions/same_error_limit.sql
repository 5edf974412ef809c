-- for: engine
create or replace function jobs_internal.same_error_limit(p_epoch bigint) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return (select i.same_error_limit from instance i);
end $$;
comment on function jobs_internal.same_error_limit(bigint) is
    'haltAfterConsecutiveSameError of the account; 0: no limit.';
