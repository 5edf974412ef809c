-- for: owner
create or replace function jobs_internal.busy_targets(p_run jobs_internal.job_execution, p_snapshot_id uuid)
returns integer[]
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    days date[];
    runs uuid[];
begin
    select array_agg(distinct x.run_day), array_agg(x.job_execution_id) into days, runs
      from job_execution x
      join job j on j.job_id = x.job_id
     where x.job_id = p_run.job_id
       and x.end_time is null
       and x.job_execution_id <> p_run.job_execution_id
       and j.overlap = 'skipTarget';
    if runs is null then
        return '{}';
    end if;
    return array(
        select t.ordinal
          from snapshot_target t
         where t.snapshot_id = p_snapshot_id
           and t.target_id in (
               select d.target_id
                 from target_execution o
                 join snapshot_target d on (d.snapshot_id, d.ordinal) = (o.snapshot_id, o.ordinal)
                where o.run_day = any(days) and o.job_execution_id = any(runs)
                  and (o.end_time is null
                       -- The next attempt of that run would take it.
                       or o.repeatable and exists (
                           select from job_execution x
                             join step_execution e on (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id)
                            where x.job_execution_id = o.job_execution_id and x.run_attempts is not null
                              and e.step_id = o.step_id and e.end_time is null))));
end $$;
comment on function jobs_internal.busy_targets(jobs_internal.job_execution, uuid) is
    'Which targets of a snapshot another live run of a job with overlap skipTarget has not finished, or would '
    'take again in its next attempt.';
