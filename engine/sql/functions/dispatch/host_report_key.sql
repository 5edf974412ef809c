-- for: owner
create or replace function jobs_internal.host_report_key(p_host uuid) returns bigint
language plpgsql immutable strict security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return hashtextextended('muster report ' || p_host, 0);
end $$;
comment on function jobs_internal.host_report_key(uuid) is
    'The key of an advisory lock: shared by the reports of a host, held alone by who takes tasks from it.';
