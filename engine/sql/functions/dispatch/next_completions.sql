-- for: owner
create or replace function jobs_internal.next_completions(p_hosts uuid[], p_after bigint[])
returns table (host_id uuid, number bigint, report jsonb)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    delete from completion c
     using unnest(p_hosts, p_after) known (host_id, number)
     where c.host_id = known.host_id and c.number <= known.number;
    -- By its index: the table itself is mostly rows that are gone.
    return query
    select c.host_id, c.number, c.report
      from completion c
      left join unnest(p_hosts, p_after) known (host_id, number) on known.host_id = c.host_id
     where c.number > coalesce(known.number, 0)
     order by c.number;
end $$;
comment on function jobs_internal.next_completions(uuid[], bigint[]) is
    'The completions after the numbers that the caller has read; all completions of hosts that it does not name. '
    'Completions that it has read are deleted.';
