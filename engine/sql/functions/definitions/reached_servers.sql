-- for: agent
create or replace function jobs_internal.reached_servers(p_kind text, p_names text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    names constant text[] := array(select lower(n) from unnest(p_names) n);
begin
    if p_kind not in ('targetGroups', 'jobs', 'plans') then
        perform raise_error('MU012', 'p_kind', format('there is no kind %s', p_kind));
    end if;
    return (
        with recursive step as (
            select s.target_group_id, s.output_server_name
              from job j
              join job_step s on s.job_id = j.job_id and s.version = j.version
             where p_kind = 'jobs' and lower(j.name) = any(names) and j.deleted_at is null and not j.system
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
                                     select s.output_server_name from step s
                                     union
                                     select d.server_name
                                       from plan_snapshot p
                                       join snapshot_target d on d.snapshot_id = p.snapshot_id
                                      where p_kind = 'plans' and p.plan_id::text = any(names)) n
                              where n.name is not null),
                   'anyServer', exists (select from member m where m.target_type in ('SqlQuery', 'SqlShardMap'))));
end $$;
comment on function jobs_internal.reached_servers(text, text[]) is
    'The servers that target groups, or the current steps of jobs, name, also through nested groups, or that are targets '
    'of plans; anyServer: rows that are read at run time may name any server of the directory. Names that do not exist are ignored.';
