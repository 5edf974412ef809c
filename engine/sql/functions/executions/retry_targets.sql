-- for: owner
create or replace function jobs_internal.retry_targets(
    p_run uuid, p_step_id integer, p_ordinals integer[], p_keep_checkpoint boolean default false
) returns setof integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    run job_execution;
    step step_execution;
    ordinals integer[] := p_ordinals;
    target_ids uuid[];
    moved integer[];
begin
    select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
    perform lock_dispatch();
    for step in
        select e.* from step_execution e
         where (e.run_day, e.job_execution_id) = (run.run_day, p_run) and e.step_id >= p_step_id and e.end_time is null
         order by e.step_id for no key update
    loop
        -- In the later steps of a chain: what was skipped because the target had not succeeded before.
        if step.step_id > p_step_id then
            exit when moved is null;
            ordinals := array(select d.ordinal from snapshot_target d
                               where d.snapshot_id = step.snapshot_id and d.target_id = any(target_ids));
        end if;
        -- The day is also compared by >=, so that the planner sees the primary key as the only short way.
        with target as materialized (
            select run.run_day as d, p_run as r, step.step_id as s, o from unnest(ordinals) o
        ), retried as (
            update target_execution x
               set lifecycle           = 'Created',
                   phase               = null,
                   free_attempts       = x.attempts,
                   -- A server that could not be listed is listed before it is tried again.
                   not_before          = (select clock_timestamp() from snapshot_target d
                                           where (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
                                             and d.labels ? 'muster.unlisted'),
                   start_time          = null,
                   tried_at            = null,
                   end_time            = null,
                   cancel_requested_at = null,
                   wait_reason         = null,
                   end_reason          = null,
                   last_message        = null,
                   checkpoint          = case when p_keep_checkpoint then x.checkpoint end,
                   repeatable          = false
              from target g
             where x.run_day >= run.run_day
               and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (g.d, g.r, g.s, g.o)
               and x.end_time is not null and x.lifecycle <> 'Succeeded'
               and (x.step_id = p_step_id or x.end_reason = 'PreviousStepNotSucceeded')
            returning x.ordinal
        )
        select array_agg(t.ordinal) into ordinals from retried t;
        if step.step_id = p_step_id then
            moved := ordinals;
            target_ids := array(select d.target_id from snapshot_target d
                                 where d.snapshot_id = step.snapshot_id and d.ordinal = any(moved));
            update step_execution e
               set wait_reason  = null,
                   not_before   = null,
                   last_message = ''
             where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id)
               and e.wait_reason in ('Gate', 'WavePause') and moved is not null;
        end if;
    end loop;
    update job_execution x
       set retries      = x.retries + 1,
           wait_reason  = case when x.wait_reason in ('Gate', 'WavePause') then null else x.wait_reason end,
           last_message = case when x.wait_reason in ('Gate', 'WavePause') then '' else x.last_message end
     where x.job_execution_id = p_run and moved is not null;
    return query select unnest(moved);
end $$;
comment on function jobs_internal.retry_targets(uuid, integer, integer[], boolean) is
    'Those of the targets that have ended, but not as Succeeded, go back to Created with a fresh budget of attempts and a '
    'fresh timeout, if the step is unfinished; their attempts are kept. With '
    'p_keep_checkpoint, a script that may have committed is not repeated before its verify query is asked. So do targets of later steps that were skipped '
    'because of them. Returns the targets of the step that moved. The core then loads the run again.';
