-- for: owner
create or replace function jobs_internal.list_attempts(
    p_run jobs_internal.job_execution, p_path text[], p_after jsonb, p_top integer
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    most_bytes constant bigint := 2 * 1024 * 1024;
    step constant step_execution := find_step(p_run, p_path[3]);
    found record;
    page integer[];
begin
    select * into found from find_target(step, p_path[4]);
    page := array(
        select s.attempt
          from (select n.attempt, sum(n.bytes) over (order by n.attempt desc) - n.bytes as bytes_before
                  from (select k.attempt,
                               octet_length(concat(k.notices, k.message, k.detail, k.hint, k.context)) as bytes
                          from task k
                         where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                               = (step.run_day, step.job_execution_id, step.step_id, (found.target).ordinal)
                           and k.start_time is not null
                           and k.attempt < coalesce((p_after ->> 'attempt')::integer, 2147483647)
                         order by k.attempt desc
                         limit p_top) n) s
         where s.bytes_before <= most_bytes
         order by s.attempt desc);
    return (
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(attempt_item(p_run, step.step_name, (found.described).target_id, k, false)
                                               order by k.attempt desc), '[]'),
                   'next', case when exists (
                       select from task o
                        where (o.run_day, o.job_execution_id, o.step_id, o.ordinal)
                              = (step.run_day, step.job_execution_id, step.step_id, (found.target).ordinal)
                          and o.start_time is not null
                          and o.attempt < page[cardinality(page)])
                   then jsonb_build_object('attempt', page[cardinality(page)]) end)
          from task k
         where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
               = (step.run_day, step.job_execution_id, step.step_id, (found.target).ordinal)
           and k.attempt = any(page));
end $$;
comment on function jobs_internal.list_attempts(jobs_internal.job_execution, text[], jsonb, integer) is
    'A page of the attempts on a target, the newest first; without reservations. A page with many notices is shorter.';
