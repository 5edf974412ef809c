-- for: owner
create or replace function jobs_internal.start_tasks(p_starts jsonb) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    now constant timestamptz := clock_timestamp();
    refused uuid[] := '{}';
    unbegun boolean;
    day date;
begin
    for day in select distinct g.d from jsonb_to_recordset(p_starts) g (d date) loop
        with given as materialized (
            select g.*, t.epoch, t.host_id, t.lifecycle
              from jsonb_to_recordset(p_starts)
                   g (d date, r uuid, s integer, o integer, a integer, i uuid, p integer, v integer)
              left join lateral (
                   select t.epoch, t.host_id, t.lifecycle from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt) = (day, g.r, g.s, g.o, g.a)
                      and t.invocation_id = g.i
                    limit 1 for no key update) t on true
             where g.d = day
        -- The rows are there: upserting is how each is found by its key, whatever the planner knows of the tables.
        ), started as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, backend_pid, server_version)
            select day, g.r, g.s, g.o, g.a, g.i, g.epoch, g.host_id, 'InProgress', now, g.p, g.v
              from given g where g.lifecycle = 'Created'
            on conflict (run_day, job_execution_id, step_id, ordinal, attempt) do update
               set lifecycle      = excluded.lifecycle,
                   start_time     = excluded.start_time,
                   backend_pid    = excluded.backend_pid,
                   server_version = excluded.server_version
        ), target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, attempts, create_time, start_time)
            select day, g.r, g.s, g.o, g.i, g.i, 'InProgress', g.a, now, now
              from given g where g.lifecycle = 'Created'
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set lifecycle          = excluded.lifecycle,
                   attempts           = excluded.attempts,
                   start_time         = coalesce(x.start_time, excluded.start_time),
                   attempt_start_time = excluded.start_time,
                   phase              = case when x.checkpoint ->> 'script' is null then 'run' else 'verify' end,
                   wait_reason        = null,
                   -- What the server said while it had no room is no longer so.
                   last_message       = case when x.wait_reason in ('ServerFull', 'ServerStarting') then null
                                             else x.last_message end,
                   not_before         = null
        )
        select refused || array(select g.i from given g where g.lifecycle is null),
               exists (select from (select distinct g.r, g.s from given g) g
                        cross join lateral (
                              select e.start_time from step_execution e
                               where (e.run_day, e.job_execution_id, e.step_id) = (day, g.r, g.s) limit 1) e
                        where e.start_time is null)
          into refused, unbegun;
        if unbegun then
            update step_execution e
               set start_time = now
              from (select distinct g.d, g.r, g.s
                      from jsonb_to_recordset(p_starts) g (d date, r uuid, s integer, i uuid)
                     where g.i <> all(refused)) g
             where (e.run_day, e.job_execution_id, e.step_id) = (g.d, g.r, g.s) and e.run_day = day
               and e.start_time is null;
        end if;
    end loop;
    return refused;
end $$;
comment on function jobs_internal.start_tasks(jsonb) is
    'Reserved tasks become attempts. Returns the invocations that have no task. Repeating it is harmless.';
