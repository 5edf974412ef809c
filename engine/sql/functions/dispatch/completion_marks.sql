-- for: engine
create or replace function jobs_internal.completion_marks(p_epoch bigint)
returns table (host_id uuid, number bigint)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query select c.host_id, max(c.number) from completion c group by c.host_id;
end $$;
comment on function jobs_internal.completion_marks(bigint) is
    'The number of the newest completion of each host; the rows of executions already hold what those completions '
    'report.';
