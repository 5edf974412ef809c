-- for: owner
create or replace function jobs_internal.hold_hosts_v1(p_hosts uuid[]) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(report_lock_v1(h)) from (
        select distinct h from unnest(p_hosts) h order by h) h (h);
end $$;
comment on function jobs_internal.hold_hosts_v1(uuid[]) is
    'Nobody else writes what these hosts run until the transaction ends: taking tasks from them waits for their reports.';
