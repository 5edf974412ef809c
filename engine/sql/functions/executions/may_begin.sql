-- for: owner
create or replace function jobs_internal.may_begin(p_run jobs_internal.job_execution) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
    older job_execution[];
    mode text;
begin
    if p_run.end_time is not null then
        return 'Over';
    elsif p_run.lifecycle <> 'Created' then
        return 'Begun';
    elsif p_run.cancel_requested_at is not null then
        update cancellation c
           set completed_at  = now,
               cancel_method = 'nothing'
         where c.job_execution_id = p_run.job_execution_id and c.completed_at is null;
        update job_execution x
           set lifecycle = 'Canceled', end_time = now, end_reason = 'Canceled', wait_reason = null,
               last_message = 'Canceled before it started.'
         where x.job_execution_id = p_run.job_execution_id;
        return 'Canceled';
    end if;
    -- The core may not have read yet that the account is paused.
    if exists (select from instance i where i.paused) then
        update job_execution x
           set wait_reason = 'AccountPaused'
         where x.job_execution_id = p_run.job_execution_id and x.wait_reason is distinct from 'AccountPaused';
        return 'Paused';
    end if;
    select j.overlap into mode from job j where j.job_id = p_run.job_id;
    if mode in ('skipExecution', 'queueOne', 'cancelPrevious') then
        -- Locked from the newest to the oldest: each of these runs locks the older ones in the same order.
        older := array(
            select x from job_execution x
             where x.job_id = p_run.job_id and x.end_time is null
               and (x.create_time, x.job_execution_id) < (p_run.create_time, p_run.job_execution_id)
             order by x.create_time desc, x.job_execution_id desc for no key update);
    end if;
    if mode = 'cancelPrevious' then
        perform stop_run(x, 'engine', 'engine', 'A newer run began.')
           from unnest(older) x where x.cancel_requested_at is null;
        older := array(select x from job_execution x
                        where x.job_execution_id in (select o.job_execution_id from unnest(older) o)
                          and x.end_time is null);
    end if;
    if coalesce(cardinality(older), 0) = 0 then
        return 'Begun';
    -- All but the oldest of these runs wait; if one waits, the queue is full.
    elsif mode = 'skipExecution' or (mode = 'queueOne' and exists (
            select from unnest(older[:cardinality(older) - 1]) x where x.lifecycle = 'Created')) then
        update job_execution x
           set lifecycle = 'Skipped', end_time = now, end_reason = 'Overlap', wait_reason = null,
               last_message = 'Skipped: an older run of the job had not finished.'
         where x.job_execution_id = p_run.job_execution_id;
        return 'Skipped';
    end if;
    update job_execution x
       set wait_reason = 'Overlap'
     where x.job_execution_id = p_run.job_execution_id and x.wait_reason is distinct from 'Overlap';
    return 'Queued';
end $$;
comment on function jobs_internal.may_begin(jobs_internal.job_execution) is
    'Decides whether a run, which the caller has locked, may begin. Begun: it has begun or may begin. Skipped, '
    'Queued or Canceled: the overlap rule of the job applies because older runs are unfinished. Over: the run has '
    'finished. Paused: the account is paused.';
