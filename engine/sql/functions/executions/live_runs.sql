-- for: engine
create or replace function jobs_internal.live_runs(p_epoch bigint, p_known uuid[])
returns table (job_execution_id uuid, job_id uuid, job_name text, job_version integer, run_day date,
               create_time timestamptz, priority integer, overlap text, lifecycle text, job_paused boolean,
               cancel_requested_at timestamptz, overrides jsonb, chosen text, retries integer, steps jsonb,
               reached jsonb, run_attempts jsonb, next_attempt double precision)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select x.job_execution_id, x.job_id, j.name, x.job_version, x.run_day, x.create_time, x.priority, j.overlap,
           x.lifecycle, j.paused, x.cancel_requested_at, x.overrides,
           case when x.rerun_of is not null then 'rerun'
                when x.plan_of is not null then 'plan'
                when exists (select from chosen_target t where t.job_execution_id = x.job_execution_id)
                then 'caller' end,
           x.retries,
           coalesce(s.steps, '[]'),
           coalesce(e.reached, '[]'),
           x.run_attempts,
           case x.lifecycle when 'WaitingForRetry' then extract(epoch from x.not_before)::double precision end
      from job_execution x
      join job j on j.job_id = x.job_id
     cross join lateral (select step_definitions(x.job_id, x.job_version, x.overrides) as steps) s
     cross join lateral (
           select jsonb_agg(jsonb_build_object(
                      'stepId', e.step_id, 'lifecycle', e.lifecycle, 'snapshotId', e.snapshot_id,
                      'cancelRequested', e.cancel_requested_at is not null,
                      'aborted', e.aborted_at is not null) order by e.step_id) as reached
             from step_execution e
            where (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id)) e
     where x.end_time is null
       and x.job_execution_id <> all(coalesce(p_known, '{}'))
       and (not j.system or s.steps is not null)
     order by x.create_time, x.job_execution_id;
end $$;
comment on function jobs_internal.live_runs(bigint, uuid[]) is
    'Unfinished runs that the caller does not have yet, the oldest first, with the steps of their version and their '
    'progress. next_attempt: when a run that waits for its next attempt goes on. chosen: what chose their targets, null where target groups do. Runs of system jobs without steps belong '
    'to the Maintainer.';
