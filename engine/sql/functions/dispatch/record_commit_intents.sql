-- for: owner
create or replace function jobs_internal.record_commit_intents(p_commits jsonb) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    refused uuid[] := '{}';
    day date;
begin
    for day in select distinct g.d from jsonb_to_recordset(p_commits) g (d date) loop
        with given as materialized (
            select g.*, t.epoch, t.host_id, t.start_time
              from jsonb_to_recordset(p_commits)
                   g (d date, r uuid, s integer, o integer, a integer, i uuid, x text)
              left join lateral (
                   select t.epoch, t.host_id, t.start_time from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt) = (day, g.r, g.s, g.o, g.a)
                      and t.invocation_id = g.i and t.lifecycle = 'InProgress'
                    limit 1 for no key update) t on true
             where g.d = day
        -- The rows are there: upserting is how each is found by its key, whatever the planner knows of the tables.
        ), intended as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, xact_id)
            select day, g.r, g.s, g.o, g.a, g.i, g.epoch, g.host_id, 'InProgress', g.start_time, g.x
              from given g where g.host_id is not null and g.x <> 'committed'
            on conflict (run_day, job_execution_id, step_id, ordinal, attempt) do update
               set xact_id = excluded.xact_id
        ), target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, phase, checkpoint)
            select day, g.r, g.s, g.o, g.i, g.i, 'InProgress',
                   case g.x when 'committed' then 'verify' else 'commit' end,
                   case g.x when 'committed' then jsonb_build_object('script', g.x) end
              from given g where g.host_id is not null
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set phase      = excluded.phase,
                   checkpoint = coalesce(excluded.checkpoint, x.checkpoint)
        )
        select refused || array(select g.i from given g where g.host_id is null) into refused;
    end loop;
    return refused;
end $$;
comment on function jobs_internal.record_commit_intents(jsonb) is
    'COMMIT may be sent for these attempts; its status can be looked up by the transaction id. With ''committed'' '
    'instead of an id, it was answered and the verify query follows: no later attempt sends the script. Returns the '
    'invocations under which no attempt runs.';
