-- for: owner
create or replace function jobs_internal.attempt_progress(
    p_run jobs_internal.job_execution, out earlier integer[], out newly_succeeded integer, out unfinished integer,
    out remaining integer, out repeatable integer
)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
begin
    earlier := array(select a.newly_succeeded from run_attempt a
                      where a.job_execution_id = p_run.job_execution_id and a.end_time is not null
                      order by a.number);
    select greatest(0, count(*) filter (where t.lifecycle = 'Succeeded')
                       - coalesce((select sum(e) from unnest(earlier) e), 0)),
           count(*) filter (where t.end_time is null),
           count(*) filter (where t.repeatable and t.step_id in (
               select e.step_id from step_execution e
                where e.run_day = p_run.run_day and e.job_execution_id = p_run.job_execution_id
                  and e.end_time is null)),
           count(*) filter (where t.repeatable)
      into newly_succeeded, unfinished, remaining, repeatable
      from target_execution t
     where t.run_day = p_run.run_day and t.job_execution_id = p_run.job_execution_id;
end $$;
comment on function jobs_internal.attempt_progress(jobs_internal.job_execution) is
    'How many targets newly succeeded in the running attempt of a run and in those before it, how many are unfinished, and '
    'how many another attempt would take: of unfinished steps (remaining), and of all steps (repeatable).';
