-- for: owner
create or replace function jobs_internal.start_tasks(p_starts jobs_internal.task_start[]) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    refused uuid[] := '{}';
    has_new_step boolean;
    day date;
begin
    for day in select distinct s.run_day from unnest(p_starts) s loop
        perform check_item_day(day);
        with item as materialized (
            select s.*, t.epoch, t.host_id, t.lifecycle
              from unnest(p_starts) s
              left join lateral (
                   select t.epoch, t.host_id, t.lifecycle from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                          = (day, s.job_execution_id, s.step_id, s.ordinal, s.attempt)
                      and t.invocation_id = s.invocation_id
                    limit 1 for no key update) t on true
             where s.run_day = day
        -- The rows exist: an upsert finds each by its key, whatever the planner knows of the tables.
        ), updated_task as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, backend_pid, server_version)
            select day, i.job_execution_id, i.step_id, i.ordinal, i.attempt, i.invocation_id, i.epoch, i.host_id,
                   'InProgress', now, i.backend_pid, i.server_version
              from item i where i.lifecycle = 'Created'
            on conflict (run_day, job_execution_id, step_id, ordinal, attempt) do update
               set lifecycle      = excluded.lifecycle,
                   start_time     = excluded.start_time,
                   backend_pid    = excluded.backend_pid,
                   server_version = excluded.server_version
        ), updated_target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, attempts, create_time, start_time)
            select day, i.job_execution_id, i.step_id, i.ordinal, i.invocation_id, i.invocation_id, 'InProgress',
                   i.attempt, now, now
              from item i where i.lifecycle = 'Created'
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set lifecycle          = excluded.lifecycle,
                   attempts           = excluded.attempts,
                   start_time         = coalesce(x.start_time, excluded.start_time),
                   attempt_start_time = excluded.start_time,
                   phase              = case x.checkpoint ->> 'script' when 'verified' then 'output' when 'committed' then 'verify'
                                             when 'unknown' then 'verify' else 'run' end,
                   wait_reason        = null,
                   -- The message of a server that had no room is out of date.
                   last_message       = case when x.wait_reason in ('ServerFull', 'ServerStarting') then null
                                             else x.last_message end,
                   not_before         = null
        )
        select refused || array(select i.invocation_id from item i where i.lifecycle is null),
               exists (select from (select distinct i.job_execution_id, i.step_id from item i) i
                        cross join lateral (
                              select e.start_time from step_execution e
                               where (e.run_day, e.job_execution_id, e.step_id) = (day, i.job_execution_id, i.step_id)
                               limit 1) e
                        where e.start_time is null)
          into refused, has_new_step;
        if has_new_step then
            update step_execution e
               set start_time = now
              from (select distinct s.run_day, s.job_execution_id, s.step_id
                      from unnest(p_starts) s
                     where s.invocation_id <> all(refused)) s
             where (e.run_day, e.job_execution_id, e.step_id) = (s.run_day, s.job_execution_id, s.step_id)
               and e.run_day = day and e.start_time is null;
        end if;
    end loop;
    return refused;
end $$;
comment on function jobs_internal.start_tasks(jobs_internal.task_start[]) is
    'Reserved tasks become attempts. Returns the invocations that have no task. Repeating the call is harmless.';
