-- for: engine
create or replace function jobs_internal.rollout_progress(
    p_epoch bigint, p_run uuid, p_step_id integer, p_ends integer,
    out targets integer, out wave integer, out approved_wave integer, out halted boolean, out aborted boolean,
    out resumed_at text, out failures integer, out ended_at double precision, out lifecycles text[], out sqlstates text[]
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    step step_execution;
    since timestamptz;
begin
    perform check_epoch(p_epoch);
    select e.* into strict step
      from job_execution x
      join step_execution e on (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id)
     where x.job_execution_id = p_run and e.step_id = p_step_id;
    -- A resume of one step counts for all steps of its chain, and comes before the steps of the next one.
    since := coalesce((select max(e.resumed_at) from step_execution e
                        where (e.run_day, e.job_execution_id) = (step.run_day, p_run)), '-infinity');
    -- So does a further attempt of the run.
    since := greatest(since, (select a.start_time from run_attempt a
                               where a.job_execution_id = p_run and a.end_time is null and a.number > 1));
    targets := (select s.targets from snapshot s where s.snapshot_id = step.snapshot_id);
    wave := step.wave;
    approved_wave := step.approved_wave;
    halted := step.halted_at is not null;
    aborted := step.aborted_at is not null;
    resumed_at := to_jsonb(step.resumed_at) #>> '{}';
    select count(*) filter (where t.lifecycle in ('Failed', 'TimedOut') and t.end_time > since),
           coalesce(extract(epoch from max(t.end_time)), 0)
      into failures, ended_at
      from target_execution t
     where (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, p_run, p_step_id);
    -- The newest ends, the oldest of them first.
    select coalesce(array_agg(n.lifecycle order by n.end_time, n.ordinal), '{}'),
           coalesce(array_agg(k.sqlstate order by n.end_time, n.ordinal), '{}')
      into lifecycles, sqlstates
      from (select t.* from target_execution t
             where (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, p_run, p_step_id)
               and t.end_time > since and t.lifecycle in ('Succeeded', 'Failed', 'TimedOut')
             order by t.end_time desc, t.ordinal desc limit p_ends) n
      left join task k
        on (k.run_day, k.job_execution_id, k.step_id, k.ordinal, k.attempt)
           = (n.run_day, n.job_execution_id, n.step_id, n.ordinal, n.attempts);
end $$;
comment on function jobs_internal.rollout_progress(bigint, uuid, integer, integer) is
    'How far the rollout of a step is: its open wave, whether it is halted or aborted, and since the last resume or '
    'the start of a further attempt of the run how many targets failed and how the newest p_ends targets ended, in the order of their ends.';
