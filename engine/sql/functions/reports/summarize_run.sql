-- for: owner
create or replace function jobs_internal.summarize_run(p_run jobs_internal.job_execution) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
set enable_sort = off
as $$
declare
    now constant timestamptz := clock_timestamp();
    finished constant text[] := '{Succeeded,Failed,TimedOut,Canceled,Skipped}';
    steps constant bigint := (
        select count(*) from job_step s where (s.job_id, s.version) = (p_run.job_id, p_run.job_version));
    held constant text := case
        when p_run.end_time is not null then null
        when (select i.paused from instance i) then 'AccountPaused'
        when (select j.paused from job j where j.job_id = p_run.job_id) then 'JobPaused' end;
    summary jsonb;
    recent bigint;
    newest timestamptz;
    seconds double precision;
    rate numeric;
begin
    -- One pass over the targets, hashed whatever the statistics say: this needs the settings above. The rest is counted
    -- from its few groups.
    with tally as materialized (
        select s.step_id, g.*
          from step_execution s
         cross join lateral (
               select t.lifecycle, d.server_id, min(d.server_name) as server_name,
                      case when t.end_time is null then target_wait_reason(s, t) else t.end_reason end as reason,
                      t.wave,
                      count(*) as n, count(*) filter (where t.end_time > now - interval '1 minute') as recent,
                      max(t.end_time) as newest
                 from target_execution t
                 join snapshot_target d on d.ordinal = t.ordinal
                where (t.run_day, t.job_execution_id, t.step_id) = (p_run.run_day, p_run.job_execution_id, s.step_id)
                  and d.snapshot_id = s.snapshot_id
                group by t.lifecycle, d.server_id, 4, t.wave) g
         where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id)
    ), counted as (
        select g.step_id, g.server_id, min(g.server_name) as server_name, sum(g.n) as total,
               coalesce(sum(g.n) filter (where g.lifecycle = any(finished)), 0) as done,
               coalesce(sum(g.n) filter (where g.lifecycle in ('Failed', 'TimedOut')), 0) as failed,
               jsonb_object_agg(g.lifecycle, g.n) as counts
          from (select y.step_id, y.server_id, y.lifecycle, min(y.server_name) as server_name, sum(y.n) as n
                  from tally y
                 group by grouping sets ((y.step_id, y.lifecycle), (y.server_id, y.lifecycle), (y.lifecycle))) g
         group by g.step_id, g.server_id
    )
    select jsonb_build_object(
               'counts', coalesce((select c.counts from counted c where c.step_id is null and c.server_id is null), '{}'),
               'total', coalesce((select c.total from counted c where c.step_id is null and c.server_id is null), 0),
               'done', coalesce((select c.done from counted c where c.step_id is null and c.server_id is null), 0),
               'steps', (select coalesce(jsonb_agg(jsonb_build_object(
                            'stepId', s.step_id, 'stepName', s.step_name, 'lifecycle', s.lifecycle,
                            'createTime', iso_time(s.create_time), 'startTime', iso_time(s.start_time),
                            'endTime', iso_time(s.end_time), 'counts', coalesce(c.counts, '{}'),
                            'total', coalesce(c.total, 0), 'done', coalesce(c.done, 0), 'wave', s.wave,
                            'waves', s.waves, 'haltRule', s.halt_rule, 'notBefore', iso_time(s.not_before),
                            'waitReason', s.wait_reason, 'endReason', s.end_reason,
                            'rowsAffected', s.rows_affected,
                            'lastMessage', s.last_message) order by s.step_id), '[]')
                           from step_execution s
                           left join counted c on c.step_id = s.step_id
                          where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id)),
               'byServer', (select coalesce(jsonb_agg(jsonb_build_object(
                               'serverName', c.server_name, 'counts', c.counts, 'total', c.total)
                               order by c.failed desc, c.server_name, c.server_id), '[]')
                              from (select * from counted c where c.server_id is not null
                                     order by c.failed desc, c.server_name, c.server_id limit 1000) c),
               'byWave', (select coalesce(jsonb_agg(jsonb_build_object(
                             'stepId', w.step_id, 'wave', w.wave, 'counts', w.counts, 'total', w.total)
                             order by w.step_id, w.wave), '[]')
                            from (select n.step_id, n.wave, jsonb_object_agg(n.lifecycle, n.n) as counts,
                                         sum(n.n) as total
                                    from (select y.step_id, y.wave, y.lifecycle, sum(y.n) as n from tally y
                                           group by y.step_id, y.wave, y.lifecycle) n
                                    join step_execution s
                                      on (s.run_day, s.job_execution_id, s.step_id)
                                         = (p_run.run_day, p_run.job_execution_id, n.step_id)
                                   where s.waves > 1
                                   group by n.step_id, n.wave) w),
               'byReason', (select coalesce(jsonb_agg(jsonb_build_object('reason', r.reason, 'count', r.n)
                                                      order by r.n desc, r.reason), '[]')
                              from (select y.reason, sum(y.n) as n from tally y
                                     where y.reason is not null group by y.reason) r)),
           (select sum(y.recent) from tally y), (select max(y.newest) from tally y)
      into summary, recent, newest;
    summary := summary || jsonb_build_object(
        'jobExecutionId', p_run.job_execution_id, 'jobVersion', p_run.job_version,
        'jobName', (select j.name from job j where j.job_id = p_run.job_id), 'lifecycle', p_run.lifecycle,
        'createTime', iso_time(p_run.create_time), 'startTime', iso_time(p_run.start_time),
        'endTime', iso_time(p_run.end_time), 'waitReason', coalesce(held, p_run.wait_reason),
        'endReason', p_run.end_reason, 'rowsAffected', p_run.rows_affected, 'targets', p_run.target_counts,
        'lastMessage', p_run.last_message, 'origin', p_run.origin,
        'slot', iso_time(p_run.slot), 'actor', p_run.actor, 'door', p_run.door, 'stepCount', steps,
        'planOf', p_run.plan_of, 'limit', p_run.overrides -> 'limit', 'overrides', own_overrides(p_run),
        'attempt', nullif(p_run.attempt, 0), 'nextAttemptTime', iso_time(p_run.not_before),
        'runAttempts', case when p_run.attempt > 0 then run_attempt_items(p_run.job_execution_id) end,
        'rerunOf', p_run.rerun_of, 'reruns', (
            select coalesce(jsonb_agg(x.job_execution_id order by x.create_time), '[]')
              from job_execution x where x.rerun_of = p_run.job_execution_id),
        'cancellations', list_cancellations(p_run, null));
    -- The mean of a finished run; of a running one the rate of the last minute, or since its start.
    seconds := greatest(1, extract(epoch from coalesce(p_run.end_time, now) - coalesce(p_run.start_time, p_run.create_time)));
    rate := case when p_run.end_time is not null then (summary ->> 'done')::numeric / seconds::numeric
                 else coalesce(recent, 0) / least(60, seconds)::numeric end;
    return jsonb_build_object(
        'etag', md5(summary::text || coalesce(newest::text, '')),
        'summary', summary || jsonb_build_object(
            'ratePerSecond', round(rate, 3),
            -- Unknown while later steps have no targets yet, while nothing may start, or when running targets take much
            -- longer than finished ones did.
            'etaSeconds', case when p_run.end_time is null and rate > 0 and held is null
                                and jsonb_array_length(summary -> 'steps') = steps
                                and now - newest <= make_interval(secs => greatest(5, 3 / rate)::double precision)
                then round(((summary ->> 'total')::numeric - (summary ->> 'done')::numeric) / rate, 1) end));
end $$;
comment on function jobs_internal.summarize_run(jobs_internal.job_execution) is
    'The progress of a run: counts by lifecycle, step, server and reason, cancellations, the rate of the last '
    'minute, and a tag that changes with them but not with the rate.';
