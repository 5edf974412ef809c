-- for: owner
create or replace function jobs_internal.list_notices(
    p_run jobs_internal.job_execution, p_path text[], p_after jsonb, p_top integer
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    task constant task := find_attempt(p_run, p_path);
    first constant integer := coalesce((p_after ->> 'notice')::integer, 0);
begin
    return jsonb_build_object(
        'items', (select coalesce(jsonb_agg(e.value order by e.n), '[]')
                    from jsonb_array_elements(task.notices) with ordinality e (value, n)
                   where e.n > first and e.n <= first::bigint + p_top),
        'next', case when jsonb_array_length(task.notices) > first::bigint + p_top
                     then jsonb_build_object('notice', first + p_top) end);
end $$;
comment on function jobs_internal.list_notices(jobs_internal.job_execution, text[], jsonb, integer) is
    'A page of the notices of one attempt, in the order in which they were received.';
