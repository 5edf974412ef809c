-- for: engine
create or replace function jobs_internal.previous_targets(
    p_epoch bigint, p_run uuid, p_step_id integer, p_previous_id integer
) returns table (ordinal integer, previous_ordinal integer, previous_lifecycle text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
as $$
declare
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
    snapshot constant uuid := (select e.snapshot_id from step_execution e
                                where (e.run_day, e.job_execution_id, e.step_id) = (day, p_run, p_step_id));
    previous constant uuid := (select e.snapshot_id from step_execution e
                                where (e.run_day, e.job_execution_id, e.step_id) = (day, p_run, p_previous_id));
begin
    perform check_epoch(p_epoch);
    -- Hash joins, whatever the statistics say: they may be those of an empty table.
    return query
    select x.ordinal, p.ordinal, case when p.end_time is not null then p.lifecycle end
      from target_execution x
      join snapshot_target d on d.snapshot_id = snapshot and d.ordinal = x.ordinal
      left join snapshot_target b on b.snapshot_id = previous and b.target_id = d.target_id
      left join target_execution p
        on p.run_day = day and p.job_execution_id = p_run and p.step_id = p_previous_id and p.ordinal = b.ordinal
     where x.run_day = day and x.job_execution_id = p_run and x.step_id = p_step_id and x.end_time is null;
end $$;
comment on function jobs_internal.previous_targets(bigint, uuid, integer, integer) is
    'The unfinished targets of a step, each with its ordinal in the step before and the lifecycle that it ended with '
    'there; both are null for a target that did not take part, the lifecycle for one that is unfinished.';
