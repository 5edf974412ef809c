-- for: engine
create or replace function jobs_internal.skip_targets(
    p_epoch bigint, p_run uuid, p_step_id integer, p_ordinals integer[]
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
    previous step_execution;
    ended bigint;
begin
    perform check_epoch(p_epoch);
    perform lock_dispatch();
    select e.* into strict previous from step_execution e
     where e.run_day = day and e.job_execution_id = p_run and e.step_id < p_step_id
     order by e.step_id desc limit 1;
    -- The day is also compared by >=, so that the planner sees the primary key as the only short way.
    with target as materialized (
        select day as d, p_run as r, p_step_id as s, o from unnest(p_ordinals) o
    )
    update target_execution x
       set lifecycle    = 'Skipped',
           end_time     = now,
           not_before   = null,
           wait_reason  = null,
           end_reason   = 'PreviousStepNotSucceeded',
           last_message = case when exists (
                                   select from snapshot_target d
                                     join snapshot_target b on b.target_id = d.target_id
                                    where (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
                                      and b.snapshot_id = previous.snapshot_id)
                               then format('Skipped: step "%s" has not succeeded on this target.', previous.step_name)
                               else format('Skipped: step "%s" has failed, and this target took no part in it.',
                                           previous.step_name) end
      from target g
     where x.run_day >= day
       and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (g.d, g.r, g.s, g.o)
       and x.lifecycle = 'Created'
       -- Its target of the step before may have been retried since the core decided.
       and not exists (
           select from snapshot_target d
             join snapshot_target b on b.target_id = d.target_id and b.snapshot_id = previous.snapshot_id
             join target_execution p
               on (p.run_day, p.job_execution_id, p.step_id, p.ordinal)
                  = (day, p_run, previous.step_id, b.ordinal)
            where (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal) and p.end_time is null);
    get diagnostics ended = row_count;
    perform write_target_event(p_run, p_step_id, 'Skipped', ended);
end $$;
comment on function jobs_internal.skip_targets(bigint, uuid, integer, integer[]) is
    'Ends targets of a step with advance perTarget that have not succeeded in the step before. None of them has ever '
    'been reserved. Repeating it is harmless.';
