-- for: agent
create or replace function jobs_internal.reached_servers(p_kind text, p_names text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    names constant text[] := array(select lower(n) from unnest(p_names) n);
begin
    if p_kind not in ('targetGroups', 'jobs', 'outputs', 'plans', 'executions') then
        perform raise_error('MU012', 'p_kind', format('there is no kind %s', p_kind));
    end if;
    return (
        with recursive run as (
            select x.* from job_execution x where p_kind = 'executions' and x.job_execution_id::text = any(names)
        ), step as (
            select s.target_group_id, s.output_server_name
              from job j
              join job_step s on s.job_id = j.job_id and s.version = j.version
             where p_kind = 'jobs' and lower(j.name) = any(names) and j.deleted_at is null and not j.system
            union all
            select s.target_group_id, null
              from run x
              join job_step s on s.job_id = x.job_id and s.version = x.job_version
             where x.end_time is null
               and not exists (select from step_execution e
                                where (e.run_day, e.job_execution_id, e.step_id)
                                      = (x.run_day, x.job_execution_id, s.step_id)
                                  and e.snapshot_id is not null)
            union all
            select null, s.output_server_name
              from job_step s
             where (s.job_id, s.version) in (
                   select x.job_id, x.job_version from run x where x.end_time is null
                   union all
                   select p.job_id, p.job_version from plan p where p_kind = 'plans' and p.plan_id::text = any(names)
                   union all
                   select j.job_id, j.version from job j
                    where p_kind = 'outputs' and lower(j.name) = any(names) and j.deleted_at is null and not j.system)
        ), inside (id) as (
            (select g.target_group_id from target_group g where p_kind = 'targetGroups' and lower(g.name) = any(names)
             union
             select s.target_group_id from step s)
            union
            select m.nested_group_id
              from target_group_member m
              join inside i on m.target_group_id = i.id
             where m.nested_group_id is not null
        ), member as (
            select m.server_name, m.target_type from target_group_member m join inside i on m.target_group_id = i.id
        )
        select jsonb_build_object(
                   'names', (select coalesce(jsonb_agg(distinct n.name), '[]')
                               from (select m.server_name as name from member m
                                     union
                                     select s.output_server_name from step s) n
                              where n.name is not null),
                   'serverIds', (select coalesce(jsonb_agg(t.server_id), '[]')
                                   from (select d.server_id
                                           from run x
                                           join step_execution e on e.run_day = x.run_day
                                                                and e.job_execution_id = x.job_execution_id
                                           join snapshot_target d on d.snapshot_id = e.snapshot_id
                                         union
                                         select c.server_id
                                           from run x
                                           join chosen_target c on c.job_execution_id = x.job_execution_id
                                         union
                                         select d.server_id
                                           from plan_snapshot p
                                           join snapshot_target d on d.snapshot_id = p.snapshot_id
                                          where p_kind = 'plans' and p.plan_id::text = any(names)) t),
                   'anyServer', exists (select from member m where m.target_type in ('SqlQuery', 'SqlShardMap'))));
end $$;
comment on function jobs_internal.reached_servers(text, text[]) is
    'The servers that target groups, the current steps of jobs, or the coming steps of live runs (by their ids) name, also '
    'through nested groups, with the servers of outputs, also for plans; of the kind outputs: these alone. serverIds: those '
    'of the targets that runs have or were given, and of plans; anyServer: rows that are read at run time may name any server '
    'of the directory. Names that do not exist are ignored.';
