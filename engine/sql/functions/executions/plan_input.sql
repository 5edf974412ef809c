-- for: engine
create or replace function jobs_internal.plan_input(p_epoch bigint, p_job text) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wanted constant job := find_job(p_job);
begin
    perform check_epoch(p_epoch);
    return jsonb_build_object(
        'jobId', wanted.job_id, 'version', wanted.version,
        'steps', coalesce(step_definitions(wanted.job_id, wanted.version), '[]'),
        'scripts', (
            select coalesce(jsonb_agg(jsonb_build_object(
                       'script', c.body, 'transaction', coalesce(s.options ->> 'transaction', 'auto'),
                       'attempts', d.attempts, 'seconds', d.seconds) order by s.step_id), '[]')
              from job_step s
              join script c on c.script_hash = s.script_hash
             -- The last runs with the same script and options.
             cross join lateral (
                   select count(*) as attempts, avg(extract(epoch from t.end_time - t.start_time)) as seconds
                     from (select x.run_day, x.job_execution_id from job_execution x
                            where x.job_id = wanted.job_id and x.end_time is not null
                            order by x.create_time desc limit 5) x
                     join step_execution e
                       on (e.run_day, e.job_execution_id) = (x.run_day, x.job_execution_id)
                      and e.content_hash = s.content_hash
                    cross join lateral (
                          select t.start_time, t.end_time from task t
                           where (t.run_day, t.job_execution_id, t.step_id)
                                 = (e.run_day, e.job_execution_id, e.step_id)
                             and t.lifecycle = 'Succeeded'
                           limit 1000) t) d
             where (s.job_id, s.version) = (wanted.job_id, wanted.version)));
end $$;
comment on function jobs_internal.plan_input(bigint, text) is
    'All that planning the current version of a job needs beside its target groups: the steps, and in the same order '
    'their scripts and how long attempts with them took that succeeded.';
