-- for: agent
create or replace function jobs_internal.read_server_users(p_server_ids text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    most constant integer := 20;
    ids constant text[] := (select array_agg(lower(i.id)) from unnest(p_server_ids) i (id));
    names constant text[] := (select array_agg(n.name) from server_names() n where lower(n.server_id) = any(ids));
begin
    return jsonb_build_object(
        'groups', (select coalesce(jsonb_agg(u.name order by u.name), '[]')
                     from (select distinct g.name
                             from target_group_member m
                             join target_group g on g.target_group_id = m.target_group_id
                            where lower(m.server_name) = any(names)
                            order by g.name limit most) u),
        'steps', (select coalesce(jsonb_agg(jsonb_build_object('job', u.job, 'step', u.step) order by u.job, u.step), '[]')
                    from (select j.name as job, s.name as step
                            from job j
                            join job_step s on s.job_id = j.job_id and s.version = j.version
                           where j.deleted_at is null and lower(s.output_server_name) = any(names)
                           order by j.name, s.name limit most) u),
        'running', (select coalesce(jsonb_agg(jsonb_build_object('job', u.job, 'execution', u.id) order by u.id), '[]')
                      from (select j.name as job, r.job_execution_id as id
                              from job_execution r
                              join job j on j.job_id = r.job_id
                             where r.end_time is null
                               and (exists (
                                        select from job_step o
                                         where (o.job_id, o.version) = (r.job_id, r.job_version)
                                           and lower(o.output_server_name) = any(names))
                                    or exists (select
                                             from step_execution s
                                             join snapshot_target d on d.snapshot_id = s.snapshot_id
                                                                   and lower(d.server_id) = any(ids)
                                             join target_execution t
                                               on (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                                                = (s.run_day, s.job_execution_id, s.step_id, d.ordinal)
                                            where (s.run_day, s.job_execution_id) = (r.run_day, r.job_execution_id)
                                              and s.end_time is null and t.end_time is null))
                             order by r.job_execution_id limit most) u));
end $$;
comment on function jobs_internal.read_server_users(text[]) is
    'The users of these servers: target groups and current steps that name one of them, and unfinished executions '
    'with targets or outputs there; at most 20 of each.';
