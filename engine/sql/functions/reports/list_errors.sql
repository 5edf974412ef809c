-- for: owner
create or replace function jobs_internal.list_errors(p_run jobs_internal.job_execution, p_after jsonb, p_top integer)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    skip constant bigint := coalesce((p_after ->> 'skip')::bigint, 0);
    found jsonb;
begin
    with failure as materialized (
        -- The newest finished attempt; a reservation of the next one has no error. A target that did not end by its
        -- attempt, but by its timeout or a cancellation, shows both. A cancelled target is included if it had failed
        -- before.
        select t.step_id, t.ordinal, t.snapshot_id, t.attempts, t.lifecycle, k.error_fingerprint, k.sqlstate, k.hint,
               k.error_position, w.reason, coalesce('f' || k.error_fingerprint, '') || '/' || coalesce(w.reason, '') as cause,
               case when k.message is null then t.last_message
                    when t.end_time is null or t.lifecycle = k.lifecycle then k.message
                    when coalesce(t.last_message, '') in ('', k.message)
                    then format('%s Last error: %s', case t.lifecycle when 'Canceled' then 'It was canceled.'
                                                     else 'Its time was over.' end, k.message)
                    when position(k.message in t.last_message) > 0 then t.last_message
                    else format('%s Last error: %s', t.last_message, k.message) end as message
          from target_execution t
          left join lateral (
               select k.error_fingerprint, k.sqlstate, k.hint, k.error_position, k.end_reason, k.message, k.lifecycle
                 from task k
                where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                      = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                  and k.end_time is not null
                  and (t.lifecycle <> 'Canceled' or k.lifecycle in ('Failed', 'TimedOut'))
                order by k.attempt desc
                limit 1) k on true
         cross join lateral (select coalesce(t.end_reason, k.end_reason) as reason) w
         where (t.run_day, t.job_execution_id) = (p_run.run_day, p_run.job_execution_id)
           and (t.lifecycle in ('Failed', 'TimedOut', 'WaitingForRetry')
                or t.lifecycle = 'Canceled' and t.attempts > 0 and k.lifecycle is not null)
    ), numbered as (
        select w.*, row_number() over (partition by w.cause order by w.step_id, w.ordinal) as place from failure w
    ), page as (
        select n.cause, count(*) as n, count(*) filter (where n.lifecycle = 'WaitingForRetry') as retrying,
               min(n.reason) as reason,
               row_number() over (order by count(*) desc, n.cause) as place
          from numbered n
         group by n.cause
         order by count(*) desc, n.cause
         limit p_top + 1 offset skip
    )
    select jsonb_build_object(
               'items', coalesce(jsonb_agg(jsonb_build_object(
                   'fingerprint', first.error_fingerprint, 'sqlstate', first.sqlstate, 'reason', p.reason,
                   'message', first.message, 'hint', first.hint, 'line', place.line, 'column', place.col,
                   'count', p.n, 'retrying', p.retrying,
                   'targets', sample.targets) order by p.place) filter (where p.place <= skip + p_top), '[]'),
               'next', case when count(*) > p_top then jsonb_build_object('skip', skip + p_top) end)
      into found
      from page p
      join numbered first on first.cause = p.cause and first.place = 1
      -- Where in the script of the step: all targets of a step run the same one.
      left join lateral (
           select 1 + length(b.before) - length(replace(b.before, chr(10), '')) as line,
                  coalesce(nullif(strpos(reverse(b.before), chr(10)), 0), first.error_position) as col
             from job_step j
             join script c using (script_hash)
            cross join lateral (select left(c.body, first.error_position - 1) as before) b
            where (j.job_id, j.version, j.step_id) = (p_run.job_id, p_run.job_version, first.step_id)
              and first.error_position > 0) place on true
     cross join lateral (
           select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                      'stepName', s.step_name, 'targetId', d.target_id, 'serverName', d.server_name,
                      'databaseName', d.database_name, 'schemaName', d.schema_name, 'attempts', n.attempts))
                      order by n.place) as targets
             from numbered n
             join step_execution s
               on (s.run_day, s.job_execution_id, s.step_id) = (p_run.run_day, p_run.job_execution_id, n.step_id)
             join snapshot_target d on (d.snapshot_id, d.ordinal) = (n.snapshot_id, n.ordinal)
            where n.cause = p.cause and n.place <= 10) sample;
    return found;
end $$;
comment on function jobs_internal.list_errors(jobs_internal.job_execution, jsonb, integer) is
    'The errors of a run, grouped by cause, the most frequent first: failed targets, targets that wait for a retry, '
    'and targets that were cancelled after they had failed.';
