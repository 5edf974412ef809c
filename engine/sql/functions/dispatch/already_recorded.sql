-- for: owner
create or replace function jobs_internal.already_recorded(p_results jobs_internal.task_result[]) returns setof uuid
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select r.invocation_id
      from unnest(p_results) r
     cross join lateral (
           select from task t
            where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                  = (r.run_day, r.job_execution_id, r.step_id, r.ordinal, r.attempt)
              and t.invocation_id = r.invocation_id and t.end_time is not null limit 1) t;
end $$;
comment on function jobs_internal.already_recorded(jobs_internal.task_result[]) is
    'The invocations whose outcome is recorded.';
