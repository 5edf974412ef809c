-- for: owner
create or replace function jobs_internal.record_results(p_results jobs_internal.task_result[])
returns setof jobs_internal.completion_item
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set enable_sort = off
as $$
declare
    now constant timestamptz := clock_timestamp();
    day date;
begin
    for day in select distinct r.run_day from unnest(p_results) r loop
        perform check_item_day(day);
        return query
        with item as materialized (
            select r.*, coalesce(r.again, false) as repeats, t.epoch, t.host_id, t.attempt_start,
                   x.target_execution_id, x.snapshot_id, x.attempts, x.start_time,
                   x.attempts - x.free_attempts as counted_attempts, x.cancel_requested_at is not null as canceled
              from unnest(p_results) r
             cross join lateral (
                   select t.epoch, t.host_id, t.start_time as attempt_start from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                          = (day, r.job_execution_id, r.step_id, r.ordinal, r.attempt)
                      and t.invocation_id = r.invocation_id and t.lifecycle = 'InProgress'
                    limit 1 for no key update) t
             cross join lateral (
                   select x.* from target_execution x
                    where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                          = (day, r.job_execution_id, r.step_id, r.ordinal)
                    limit 1) x
             where r.run_day = day
        ), step as materialized (
            select i.job_execution_id, i.step_id, p.*,
                   coalesce(e.cancel_requested_at, e.aborted_at, x.cancel_requested_at) is not null as canceled
              from (select distinct i.job_execution_id, i.step_id from item i) i
             cross join lateral (
                   select x.* from job_execution x where x.job_execution_id = i.job_execution_id limit 1) x
             cross join lateral (
                   select e.cancel_requested_at, e.aborted_at from step_execution e
                    where (e.run_day, e.job_execution_id, e.step_id) = (day, i.job_execution_id, i.step_id) limit 1) e
             cross join lateral (
                   select p.job_id, p.content_hash,
                          coalesce((x.overrides ->> 'timeoutSeconds')::integer, p.timeout_seconds) as timeout_seconds,
                          coalesce((x.overrides ->> 'retryAttempts')::integer, p.retry_attempts) as retry_attempts,
                          p.initial_retry_interval_seconds as first_pause,
                          p.maximum_retry_interval_seconds as longest_pause,
                          p.retry_interval_backoff_multiplier::double precision as multiplier,
                          coalesce((p.options ->> 'jitter')::double precision, 0.25) as jitter
                     from job_step p
                    where (p.job_id, p.version, p.step_id) = (x.job_id, x.job_version, i.step_id) limit 1) p
        ), decision as materialized (
            select d.*,
                   case when not d.retries then d.lifecycle when d.canceled then 'Canceled'
                        else 'WaitingForRetry' end as outcome,
                   -- The engine stopped the attempt in order to repeat it, and the target was cancelled meanwhile.
                   d.retries and d.canceled and d.lifecycle = 'Canceled' as canceled_meanwhile,
                   -- Of a target that ends here: whether the next attempt of the run may take it.
                   not d.retries and d.lifecycle in ('Failed', 'TimedOut') and d.retry as repeatable,
                   case when d.retries and not d.canceled then least(
                       d.deadline,
                       now + make_interval(secs => case when d.repeats then 0 else (1 + random() * d.jitter) * case
                           -- Longer than every maximum; the power would soon overflow.
                           when (d.counted_attempts - 1) * ln(d.multiplier) > 50 then d.longest_pause
                           else least(d.first_pause * power(d.multiplier, d.counted_attempts - 1), d.longest_pause)
                       end end)) end as not_before
              from (select i.job_execution_id, i.step_id, i.ordinal, i.invocation_id, i.lifecycle, i.repeats,
                           coalesce(i.retry, false) as retry, i.reason,
                           i.sqlstate, i.fingerprint, i.result_hash, coalesce(i.last_message, '') as last_message,
                           i.phase, i.cancel_method, i.checkpoint, i.rows_affected, i.target_execution_id, i.snapshot_id, i.attempts,
                           i.counted_attempts, p.job_id, p.content_hash, p.multiplier, p.first_pause, p.longest_pause,
                           p.jitter, p.canceled or i.canceled as canceled,
                           i.start_time + make_interval(secs => p.timeout_seconds) as deadline,
                           i.lifecycle in ('Failed', 'Canceled') and i.repeats
                           or i.lifecycle = 'Failed' and i.retry is true
                              and i.counted_attempts <= p.retry_attempts as retries
                      from item i
                      join step p on (p.job_execution_id, p.step_id) = (i.job_execution_id, i.step_id)) d
        -- The rows exist: an upsert finds each by its key, whatever the planner knows of the tables.
        ), updated_task as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, end_time, end_reason, sqlstate, message, detail, hint, context,
                              error_position, error_fingerprint, notices, results, result_hash, rows, bytes,
                              statement_no, timings, blockers)
            select day, i.job_execution_id, i.step_id, i.ordinal, i.attempt, i.invocation_id, i.epoch, i.host_id,
                   i.lifecycle, i.attempt_start, now, i.reason, i.sqlstate, i.message, i.detail, i.hint, i.context,
                   i.position, i.fingerprint, coalesce(i.notices, '[]'), coalesce(i.results, '[]'),
                   decode(i.result_hash, 'hex'), coalesce(i.rows, 0), coalesce(i.bytes, 0), i.statement_no,
                   coalesce(i.timings, '{}'), coalesce(i.blockers, '[]')
              from item i
            on conflict (run_day, job_execution_id, step_id, ordinal, attempt) do update
               set lifecycle         = excluded.lifecycle,
                   end_time          = excluded.end_time,
                   end_reason        = excluded.end_reason,
                   sqlstate          = excluded.sqlstate,
                   message           = excluded.message,
                   detail            = excluded.detail,
                   hint              = excluded.hint,
                   context           = excluded.context,
                   error_position    = excluded.error_position,
                   error_fingerprint = excluded.error_fingerprint,
                   notices           = excluded.notices,
                   results           = excluded.results,
                   result_hash       = excluded.result_hash,
                   rows              = excluded.rows,
                   bytes             = excluded.bytes,
                   statement_no      = excluded.statement_no,
                   timings           = excluded.timings,
                   blockers          = excluded.blockers
        ), updated_target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, phase, free_attempts, not_before, wait_reason,
                                               end_time, end_reason, last_message, checkpoint,
                                               repeatable, rows_affected)
            select day, d.job_execution_id, d.step_id, d.ordinal, d.target_execution_id, d.snapshot_id, d.outcome,
                   d.phase, d.repeats::integer, d.not_before, case d.outcome when 'WaitingForRetry' then 'Retry' end,
                   case when d.outcome <> 'WaitingForRetry' then now end,
                   case when d.outcome = 'WaitingForRetry' then null
                        when d.outcome = d.lifecycle and not d.canceled_meanwhile then d.reason else 'Canceled' end,
                   case when d.canceled_meanwhile then 'It was cancelled.' else d.last_message end, d.checkpoint,
                   d.repeatable, d.rows_affected
              from decision d
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set lifecycle     = excluded.lifecycle,
                   phase         = coalesce(excluded.phase, x.phase),
                   free_attempts = x.free_attempts + excluded.free_attempts,
                   not_before    = excluded.not_before,
                   wait_reason   = excluded.wait_reason,
                   end_time      = excluded.end_time,
                   end_reason    = excluded.end_reason,
                   last_message  = excluded.last_message,
                   checkpoint    = case when excluded.checkpoint is null then x.checkpoint
                                    else next_checkpoint(x.checkpoint, excluded.checkpoint, x.attempts) end,
                   repeatable    = excluded.repeatable,
                   rows_affected = coalesce(excluded.rows_affected, x.rows_affected)
        ), updated_ledger as (
            insert into target_ledger (job_id, content_hash, target_id, lifecycle, end_reason, job_execution_id, step_id,
                                       ended_at, result_hash)
            select distinct on (d.job_id, d.content_hash, s.target_id)
                   d.job_id, d.content_hash, s.target_id, d.outcome,
                   case when d.outcome = d.lifecycle and not d.canceled_meanwhile then d.reason else 'Canceled' end,
                   d.job_execution_id, d.step_id, now, decode(d.result_hash, 'hex')
              from decision d
             -- A range of one number, in order: the planner then uses the primary key, not the index by target.
             cross join lateral (
                   select s.target_id from snapshot_target s
                    where s.snapshot_id = d.snapshot_id and s.ordinal between d.ordinal and d.ordinal
                    order by s.ordinal limit 1) s
             where d.outcome <> 'WaitingForRetry'
             order by d.job_id, d.content_hash, s.target_id, d.step_id desc
            on conflict (job_id, content_hash, target_id) do update
               set lifecycle        = excluded.lifecycle,
                   end_reason       = excluded.end_reason,
                   job_execution_id = excluded.job_execution_id,
                   step_id          = excluded.step_id,
                   ended_at         = excluded.ended_at,
                   result_hash      = excluded.result_hash
             where target_ledger.ended_at <= excluded.ended_at  -- a later end may have been written first
        ), event as (
            -- One row for each step of the batch. publish_events describes the targets that failed.
            insert into outbox (kind, job_id, job_execution_id, payload)
            select 'targetsEnded', d.job_id, d.job_execution_id, jsonb_strip_nulls(jsonb_build_object(
                       'stepId', d.step_id, 'counts', jsonb_build_object(
                           'Succeeded', nullif(count(*) filter (where d.outcome = 'Succeeded'), 0),
                           'Failed', nullif(count(*) filter (where d.outcome = 'Failed'), 0),
                           'TimedOut', nullif(count(*) filter (where d.outcome = 'TimedOut'), 0),
                           'Canceled', nullif(count(*) filter (where d.outcome = 'Canceled'), 0)),
                       'failed', (array_agg(d.ordinal) filter (where d.outcome in ('Failed', 'TimedOut')))[:20]))
              from decision d
             where d.outcome <> 'WaitingForRetry'
             group by d.job_id, d.job_execution_id, d.step_id
        )
        select d.invocation_id, 'result', d.outcome, d.attempts,
               extract(epoch from d.not_before)::double precision,
               case d.outcome when 'WaitingForRetry' then extract(epoch from d.deadline)::double precision end,
               d.cancel_method, d.reason, d.sqlstate, d.fingerprint
          from decision d;
    end loop;
end $$;
comment on function jobs_internal.record_results(jobs_internal.task_result[]) is
    'Records the outcome of attempts, and whether each target is finished or waits for another attempt, and until '
    'when. An invocation that is not returned was refused: no attempt runs under it.';
