-- for: owner
create or replace function jobs_internal.next_completions(p_hosts uuid[], p_after bigint[])
returns setof jobs_internal.completion
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    delete from completion c
     using unnest(p_hosts, p_after) mark (host_id, number)
     where c.host_id = mark.host_id and c.number <= mark.number;
    -- By an index: most rows of the table itself are deleted ones.
    return query
    select c.*
      from completion c
      left join unnest(p_hosts, p_after) mark (host_id, number) on mark.host_id = c.host_id
     where c.number > coalesce(mark.number, 0)
     order by c.number;
end $$;
comment on function jobs_internal.next_completions(uuid[], bigint[]) is
    'The completions after the numbers that the caller has read; all completions of hosts that it does not name. '
    'Completions that it has read are deleted.';
