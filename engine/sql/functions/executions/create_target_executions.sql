-- for: owner
create or replace function jobs_internal.create_target_executions(
    p_run jobs_internal.job_execution, p_step_id integer, p_snapshot_id uuid, p_wave_starts integer[] default '{}',
    p_after integer default 0
) returns integer[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    pools constant jsonb := (select jsonb_object_agg(d.server_id, d.worker_pool)
                               from server_directory d where d.worker_pool is not null);
    skipped_ordinals integer[] := '{}';
begin
    if exists (select from job j where j.job_id = p_run.job_id and j.overlap = 'skipTarget') then
        -- One plan of the job at a time, so that the second of two runs sees the targets of the first.
        perform lock_name('plan', p_run.job_id::text);
        if exists (select from job_execution x
                    where x.job_id = p_run.job_id and x.end_time is null
                      and x.job_execution_id <> p_run.job_execution_id) then
            skipped_ordinals := array(select b from unnest(busy_targets(p_run, p_snapshot_id)) b where b > p_after);
        end if;
    end if;
    insert into target_execution (run_day, job_execution_id, step_id, ordinal, snapshot_id, wave, priority,
                                  worker_pool, create_time, lifecycle, end_time, end_reason, last_message)
    select p_run.run_day, p_run.job_execution_id, p_step_id, t.ordinal, p_snapshot_id,
           width_bucket(t.ordinal, p_wave_starts) + 1, p_run.priority, pools ->> t.server_id, now,
           case when s.skipped then 'Skipped' else 'Created' end, case when s.skipped then now end,
           case when s.skipped then 'Overlap' end,
           case when s.skipped then 'Skipped: another run of the job works on this target.' end
      from snapshot_target t
     cross join lateral (select t.ordinal in (select unnest(skipped_ordinals))) s (skipped)
     where t.snapshot_id = p_snapshot_id and t.ordinal > p_after
     order by t.ordinal;
    perform write_target_event(p_run.job_execution_id, p_step_id, 'Skipped', cardinality(skipped_ordinals));
    return skipped_ordinals;
end $$;
comment on function jobs_internal.create_target_executions(jobs_internal.job_execution, integer, uuid, integer[], integer) is
    'Creates a target execution of the step for every target of the snapshot after that ordinal. Returns the ordinals that are Skipped '
    'because the job says skipTarget and another run works on them. Waves after the first begin at the given '
    'ordinals.';
