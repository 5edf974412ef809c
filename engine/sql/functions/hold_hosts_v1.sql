-- for: owner
create or replace function jobs_internal.hold_hosts_v1(p_hosts uuid[]) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('muster report ' || h, 0)) from (
        select distinct h from unnest(p_hosts) h order by h) h (h);
end $$;
comment on function jobs_internal.hold_hosts_v1(uuid[]) is
    'Nobody else writes what these hosts run until the transaction ends: reports of a host come one after the other, so '
    'that its completions appear in the order of their numbers, and taking tasks from it waits for them.';
