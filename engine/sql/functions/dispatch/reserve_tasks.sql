-- for: owner
create or replace function jobs_internal.reserve_tasks(
    p_epoch bigint, p_hosts uuid[], p_run_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[],
    p_attempts integer[], p_invocations uuid[], p_slots uuid[], p_cancel_hosts uuid[], p_cancels uuid[]
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    days date[] := p_run_days[1:1];
    day date;
    next bigint;
begin
    perform check_epoch(p_epoch);
    perform lock_dispatch();
    if days[1] <> any(p_run_days) then
        days := array(select distinct d from unnest(p_run_days) d);
    end if;
    foreach day in array days loop
        insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id)
        select day, t.run, t.step, t.ordinal, t.attempt, t.invocation, p_epoch, t.host
          from unnest(p_hosts, p_run_days, p_runs, p_steps, p_ordinals, p_attempts, p_invocations)
               t (host, run_day, run, step, ordinal, attempt, invocation)
         cross join lateral (
               select from target_execution x
                where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (day, t.run, t.step, t.ordinal)
                  and x.end_time is null limit 1) x
         where t.run_day = day;
    end loop;
    next := nextval('dispatch_number');
    insert into dispatch (host_id, number, run_days, runs, steps, ordinals, attempts, invocations, slots, cancels)
    select t.host, next,
           coalesce(array_agg(t.run_day order by t.place) filter (where t.stop is null), '{}'),
           coalesce(array_agg(t.run order by t.place) filter (where t.stop is null), '{}'),
           coalesce(array_agg(t.step order by t.place) filter (where t.stop is null), '{}'),
           coalesce(array_agg(t.ordinal order by t.place) filter (where t.stop is null), '{}'),
           coalesce(array_agg(t.attempt order by t.place) filter (where t.stop is null), '{}'),
           coalesce(array_agg(t.invocation order by t.place) filter (where t.stop is null), '{}'),
           case when count(t.slot) = 0 then '{}'
                else array_agg(t.slot order by t.place) filter (where t.stop is null) end,
           coalesce(array_agg(t.stop order by t.place) filter (where t.stop is not null), '{}')
      from (select t.*, null::uuid as stop
              from unnest(p_hosts, p_run_days, p_runs, p_steps, p_ordinals, p_attempts, p_invocations, p_slots)
                   with ordinality t (host, run_day, run, step, ordinal, attempt, invocation, slot, place)
            union all
            select c.host, null, null, null, null, null, null, null, c.place, c.stop
              from unnest(p_cancel_hosts, p_cancels) with ordinality c (host, stop, place)) t
     group by t.host;
    perform pg_notify('muster_task', '');
end $$;
comment on function jobs_internal.reserve_tasks(
    bigint, uuid[], date[], uuid[], integer[], integer[], integer[], uuid[], uuid[], uuid[], uuid[]) is
    'Reserves tasks for hosts and sends hosts the running tasks to cancel: one dispatch per host. A finished '
    'target gets no task. A task with a slot is prefetched: it starts when the tasks before it in that slot have '
    'finished.';
