-- for: engine
create or replace function jobs_internal.cancel_targets(
    p_epoch bigint, p_run uuid, p_step_id integer, p_ordinals integer[]
) returns table (ordinal integer, host_id uuid, invocation_id uuid, ended boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
    chosen integer[] := p_ordinals;
    busy integer[];
    running integer[];
begin
    perform check_epoch(p_epoch);
    perform lock_dispatch();
    if chosen is null then
        chosen := array(select x.ordinal from target_execution x
                         where x.run_day = day and x.job_execution_id = p_run and x.step_id = p_step_id
                           and x.end_time is null
                         order by x.ordinal);
    end if;
    busy := array(select t.ordinal from task t
                   where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id
                     and t.lifecycle in ('Created', 'InProgress')
                     and (p_ordinals is null or t.ordinal = any(p_ordinals)));
    -- There may be many waiting targets, and no host reports on them. Reports wait only for the few others.
    return query
    select o, null::uuid, null::uuid, true
      from end_canceled(day, p_run, p_step_id, array(select c from unnest(chosen) c where c <> all(busy))) o;
    if busy <> '{}' then
        perform lock_reports();
    end if;
    delete from task t
     where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id
       and t.lifecycle = 'Created' and t.ordinal = any(busy);
    return query
    select t.ordinal, t.host_id, t.invocation_id, false from task t
     where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id
       and t.lifecycle = 'InProgress' and t.ordinal = any(busy);
    running := array(select t.ordinal from task t
                      where t.run_day = day and t.job_execution_id = p_run and t.step_id = p_step_id
                        and t.lifecycle = 'InProgress' and t.ordinal = any(busy));
    with target as materialized (
        select day as d, p_run as r, p_step_id as s, o from unnest(running) o
    )
    update target_execution x
       set cancel_requested_at = coalesce(x.cancel_requested_at, clock_timestamp())
      from target g
     where x.run_day >= day
       and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (g.d, g.r, g.s, g.o);
    return query
    select o, null::uuid, null::uuid, true
      from end_canceled(day, p_run, p_step_id, array(select b from unnest(busy) b where b <> all(running))) o;
end $$;
comment on function jobs_internal.cancel_targets(bigint, uuid, integer, integer[]) is
    'Targets of the step, or all, end as Canceled where no attempt runs, and their reservations are deleted; for '
    'running attempts returns the host that must stop them. Repeating it is harmless.';
