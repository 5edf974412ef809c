-- for: owner
create or replace function jobs_internal.record_commit_intents(p_intents jobs_internal.commit_intent[]) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    refused uuid[] := '{}';
    day date;
begin
    for day in select distinct c.run_day from unnest(p_intents) c loop
        perform check_item_day(day);
        with item as materialized (
            select c.*, t.epoch, t.host_id, t.start_time
              from unnest(p_intents) c
              left join lateral (
                   select t.epoch, t.host_id, t.start_time from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                          = (day, c.job_execution_id, c.step_id, c.ordinal, c.attempt)
                      and t.invocation_id = c.invocation_id and t.lifecycle = 'InProgress'
                    limit 1 for no key update) t on true
             where c.run_day = day
        -- The rows exist: an upsert finds each by its key, whatever the planner knows of the tables.
        ), updated_task as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, xact_id)
            select day, i.job_execution_id, i.step_id, i.ordinal, i.attempt, i.invocation_id, i.epoch, i.host_id,
                   'InProgress', i.start_time, i.xact_id
              from item i where i.host_id is not null and i.xact_id not in ('committed', 'verified')
            on conflict (run_day, job_execution_id, step_id, ordinal, attempt) do update
               set xact_id = excluded.xact_id
        ), updated_target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, phase, checkpoint)
            select day, i.job_execution_id, i.step_id, i.ordinal, i.invocation_id, i.invocation_id, 'InProgress',
                   case i.xact_id when 'committed' then 'verify' when 'verified' then 'output' else 'commit' end,
                   case when i.xact_id in ('committed', 'verified') then jsonb_build_object('script', i.xact_id) end
              from item i where i.host_id is not null
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set phase      = excluded.phase,
                   checkpoint = case when excluded.checkpoint is null then x.checkpoint
                                     else next_checkpoint(x.checkpoint, excluded.checkpoint, x.attempts) end
        )
        select refused || array(select i.invocation_id from item i where i.host_id is null) into refused;
    end loop;
    return refused;
end $$;
comment on function jobs_internal.record_commit_intents(jobs_internal.commit_intent[]) is
    'Records the transaction ids of attempts that are about to send COMMIT, by which the commit status can be looked '
    'up. With ''committed'' instead of an id, COMMIT was answered and the verify query follows; with ''verified'' the '
    'output follows: no later attempt sends the script. Returns the invocations under which no attempt runs.';
