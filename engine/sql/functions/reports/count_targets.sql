-- for: owner
create or replace function jobs_internal.count_targets(p_run jobs_internal.job_execution) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
as $$
declare
    steps constant bigint := (
        select count(*) from step_execution s where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id));
begin
    if steps = 1 then
        return (
            select jsonb_build_object(
                       'total', count(*), 'done', count(t.end_time),
                       'succeeded', count(*) filter (where t.lifecycle = 'Succeeded'),
                       'failed', count(*) filter (where t.lifecycle in ('Failed', 'TimedOut')))
              from target_execution t
             where (t.run_day, t.job_execution_id) = (p_run.run_day, p_run.job_execution_id));
    end if;
    return (
        select jsonb_build_object(
                   'total', count(*), 'done', count(*) filter (where x.done),
                   'succeeded', count(*) filter (where x.succeeded), 'failed', count(*) filter (where x.failed))
          from (select bool_and(o.end_time is not null) as done, bool_and(o.lifecycle = 'Succeeded') as succeeded,
                       bool_or(o.lifecycle in ('Failed', 'TimedOut')) as failed
                  from step_execution s
                 cross join lateral (
                       select d.target_id, t.end_time, t.lifecycle
                         from target_execution t
                         join snapshot_target d on d.ordinal = t.ordinal
                        where (t.run_day, t.job_execution_id, t.step_id)
                              = (p_run.run_day, p_run.job_execution_id, s.step_id)
                          and d.snapshot_id = s.snapshot_id
                       offset 0) o -- not merged into the query: one snapshot at a time is read, by its key
                 where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id)
                 group by o.target_id) x);
end $$;
comment on function jobs_internal.count_targets(jobs_internal.job_execution) is
    'Targets of the run, each counted once: those that ended, succeeded or failed (or timed out) in the steps that the run '
    'has reached; succeeded means in each of them.';
