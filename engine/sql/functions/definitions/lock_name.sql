-- for: owner
create or replace function jobs_internal.lock_name(p_kind text, p_name text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(p_kind || ' ' || lower(p_name), 0));
end $$;
comment on function jobs_internal.lock_name(text, text) is
    'One put of a name at a time, even while nothing has it: the second one finds what the first one made.';
