-- for: owner
create or replace function jobs_internal.run_page(p_runs uuid[], p_top integer) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(run_item(x) order by one.n) filter (where one.n <= p_top), '[]'),
                   'next', case when max(one.n) > p_top then (jsonb_agg(jsonb_build_object(
                               'createTime', x.create_time, 'id', x.job_execution_id))
                               filter (where one.n = p_top)) -> 0 end)
          from unnest(p_runs) with ordinality one (id, n)
          join job_execution x on x.job_execution_id = one.id);
end $$;
comment on function jobs_internal.run_page(uuid[], integer) is
    'The runs in their order, and a cursor when there is one more than wanted.';
