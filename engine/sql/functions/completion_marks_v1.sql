-- for: engine
create or replace function jobs_internal.completion_marks_v1(p_epoch bigint)
returns table (host_id uuid, number bigint)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform fence_v1(p_epoch);
    return query select c.host_id, max(c.number) from completion c group by c.host_id;
end $$;
comment on function jobs_internal.completion_marks_v1(bigint) is
    'The newest completion of each host: all that they tell is in the rows already.';
