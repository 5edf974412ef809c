-- for: owner
create or replace function jobs_internal.lock_hosts(p_hosts uuid[]) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(host_report_key(h)) from (
        select distinct h from unnest(p_hosts) h order by h) h (h);
end $$;
comment on function jobs_internal.lock_hosts(uuid[]) is
    'Nobody else writes what these hosts run until the transaction ends: taking tasks from them waits for their reports.';
