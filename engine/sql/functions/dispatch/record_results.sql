-- for: owner
create or replace function jobs_internal.record_results(p_results jsonb)
returns table (invocation_id uuid, lifecycle text, attempts integer, not_before timestamptz, cancel_method text,
               deadline timestamptz)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    day date;
begin
    for day in select distinct g.d from jsonb_to_recordset(p_results) g (d date) loop
        return query
        with given as materialized (
            select g.*, coalesce(g.again, false) as afresh, t.epoch, t.host_id, t.began,
                   x.target_execution_id, x.snapshot_id, x.attempts, x.start_time,
                   x.attempts - x.free_attempts as counted, x.cancel_requested_at is not null as unwanted
              from jsonb_to_recordset(p_results) g (
                       d date, r uuid, s integer, o integer, a integer, i uuid, lifecycle text, retry boolean,
                       again boolean, reason text, sqlstate text, message text, detail text, hint text, context text,
                       "position" integer, fingerprint text, notices jsonb, results jsonb, "resultHash" text,
                       rows bigint, bytes bigint, "statementNo" integer, timings jsonb, blockers jsonb,
                       "lastMessage" text, phase text, "cancelMethod" text, checkpoint jsonb)
             cross join lateral (
                   select t.epoch, t.host_id, t.start_time as began from task t
                    where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt) = (day, g.r, g.s, g.o, g.a)
                      and t.invocation_id = g.i and t.lifecycle = 'InProgress'
                    limit 1 for no key update) t
             cross join lateral (
                   select x.* from target_execution x
                    where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (day, g.r, g.s, g.o)
                    limit 1) x
             where g.d = day
        ), step as materialized (
            select g.r, g.s, p.*, coalesce(e.cancel_requested_at, x.cancel_requested_at) is not null as unwanted
              from (select distinct g.r, g.s from given g) g
             cross join lateral (select x.* from job_execution x where x.job_execution_id = g.r limit 1) x
             cross join lateral (
                   select e.cancel_requested_at from step_execution e
                    where (e.run_day, e.job_execution_id, e.step_id) = (day, g.r, g.s) limit 1) e
             cross join lateral (
                   select p.job_id, p.content_hash, p.timeout_seconds, p.retry_attempts,
                          p.initial_retry_interval_seconds as first_pause,
                          p.maximum_retry_interval_seconds as longest_pause,
                          p.retry_interval_backoff_multiplier::double precision as growth,
                          coalesce((p.options ->> 'jitter')::double precision, 0.25) as jitter
                     from job_step p
                    where (p.job_id, p.version, p.step_id) = (x.job_id, x.job_version, g.s) limit 1) p
        ), decided as materialized (
            select w.*,
                   case when not w.wanted then w.lifecycle when w.unwanted then 'Canceled'
                        else 'WaitingForRetry' end as outcome,
                   -- We ended it ourselves, to make it again, and somebody cancelled it meanwhile.
                   w.wanted and w.unwanted and w.lifecycle = 'Canceled' as called_off,
                   case when w.wanted and not w.unwanted then least(
                       w.deadline,
                       now + make_interval(secs => case when w.afresh then 0 else (1 + random() * w.jitter) * case
                           -- Beyond every maximum, and soon beyond what a number holds.
                           when (w.counted - 1) * ln(w.growth) > 50 then w.longest_pause
                           else least(w.first_pause * power(w.growth, w.counted - 1), w.longest_pause)
                       end end)) end as again_at
              from (select g.r, g.s, g.o, g.i, g.lifecycle, g.afresh, g.reason, g."resultHash",
                           coalesce(g."lastMessage", '') as said,
                           g.phase, g."cancelMethod", g.checkpoint, g.target_execution_id, g.snapshot_id, g.attempts, g.counted,
                           p.job_id, p.content_hash, p.growth, p.first_pause, p.longest_pause,
                           p.jitter, p.unwanted or g.unwanted as unwanted,
                           g.start_time + make_interval(secs => p.timeout_seconds) as deadline,
                           g.lifecycle in ('Failed', 'Canceled') and g.afresh
                           or g.lifecycle = 'Failed' and g.retry is true and g.counted <= p.retry_attempts as wanted
                      from given g
                      join step p on (p.r, p.s) = (g.r, g.s)) w
        -- The rows are there: upserting is how each is found by its key, whatever the planner knows of the tables.
        ), over as (
            insert into task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                              lifecycle, start_time, end_time, end_reason, sqlstate, message, detail, hint, context,
                              error_position, error_fingerprint, notices, results, result_hash, rows, bytes,
                              statement_no, timings, blockers)
            select day, g.r, g.s, g.o, g.a, g.i, g.epoch, g.host_id, g.lifecycle, g.began, now, g.reason, g.sqlstate,
                   g.message, g.detail, g.hint, g.context, g."position", g.fingerprint, coalesce(g.notices, '[]'),
                   coalesce(g.results, '[]'), decode(g."resultHash", 'hex'), coalesce(g.rows, 0), coalesce(g.bytes, 0),
                   g."statementNo", coalesce(g.timings, '{}'), coalesce(g.blockers, '[]')
              from given g
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
        ), target as (
            insert into target_execution as x (run_day, job_execution_id, step_id, ordinal, target_execution_id,
                                               snapshot_id, lifecycle, phase, free_attempts, not_before, wait_reason,
                                               end_time, end_reason, last_message, checkpoint)
            select day, g.r, g.s, g.o, g.target_execution_id, g.snapshot_id, g.outcome, g.phase, g.afresh::integer,
                   g.again_at, case g.outcome when 'WaitingForRetry' then 'Retry' end,
                   case when g.outcome <> 'WaitingForRetry' then now end,
                   case when g.outcome = 'WaitingForRetry' then null
                        when g.outcome = g.lifecycle and not g.called_off then g.reason else 'Canceled' end,
                   case when g.called_off then 'It was cancelled.' else g.said end, g.checkpoint
              from decided g
            on conflict (run_day, job_execution_id, step_id, ordinal) do update
               set lifecycle     = excluded.lifecycle,
                   phase         = coalesce(excluded.phase, x.phase),
                   free_attempts = x.free_attempts + excluded.free_attempts,
                   not_before    = excluded.not_before,
                   wait_reason   = excluded.wait_reason,
                   end_time      = excluded.end_time,
                   end_reason    = excluded.end_reason,
                   last_message  = excluded.last_message,
                   checkpoint    = coalesce(excluded.checkpoint, x.checkpoint)
        ), ledger as (
            insert into target_ledger (job_id, content_hash, target_id, lifecycle, end_reason, job_execution_id, step_id,
                                       ended_at, result_hash)
            select distinct on (g.job_id, g.content_hash, d.target_id)
                   g.job_id, g.content_hash, d.target_id, g.outcome,
                   case when g.outcome = g.lifecycle and not g.called_off then g.reason else 'Canceled' end, g.r, g.s, now,
                   decode(g."resultHash", 'hex')
              from decided g
             -- A range of one in its order: only the primary key has that, and the other index would be read to its end.
             cross join lateral (
                   select d.target_id from snapshot_target d
                    where d.snapshot_id = g.snapshot_id and d.ordinal between g.o and g.o
                    order by d.ordinal limit 1) d
             where g.outcome <> 'WaitingForRetry'
             order by g.job_id, g.content_hash, d.target_id, g.s desc
            on conflict (job_id, content_hash, target_id) do update
               set lifecycle        = excluded.lifecycle,
                   end_reason       = excluded.end_reason,
                   job_execution_id = excluded.job_execution_id,
                   step_id          = excluded.step_id,
                   ended_at         = excluded.ended_at,
                   result_hash      = excluded.result_hash
             where target_ledger.ended_at <= excluded.ended_at  -- two runs may end here, written in the other order
        )
        select g.i, g.outcome, g.attempts, g.again_at, g."cancelMethod",
               case g.outcome when 'WaitingForRetry' then g.deadline end
          from decided g;
    end loop;
end $$;
comment on function jobs_internal.record_results(jsonb) is
    'Records the outcome of attempts, and whether each target is finished or waits for another attempt, and until '
    'when. An invocation that is not returned was refused: no attempt runs under it.';
