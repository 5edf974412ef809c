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
                       'attempts', d.attempts, 'seconds', d.seconds,
                       'output', case when s.output_type is not null then jsonb_build_object(
                           'serverName', s.output_server_name, 'databaseName', s.output_database_name,
                           'schemaName', s.output_schema_name, 'tableName', s.output_table_name,
                           'serverExists', v.server_id is not null,
                           'disabled', coalesce(v.disabled, false) or exists (
                               select from private_endpoint e
                                where lower(e.server_id) = lower(v.server_id) and e.status = 'Rejected'),
                           -- Otherwise the member of the target group may name one.
                           'hasCredential', coalesce(s.output_credential_id, s.credential_id) is not null or exists (
                               select from credential n where lower(n.name) = lower(v.job_credential))) end)
                   order by s.step_id), '[]')
              from job_step s
              join script c on c.script_hash = s.script_hash
              left join lateral (
                   select o.* from server_names() n join server_directory o on o.server_id = n.server_id
                    where n.name = lower(s.output_server_name) limit 1) v on true
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
    'their scripts, their outputs, and how long attempts with them took that succeeded.';
