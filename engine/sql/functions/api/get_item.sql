-- for: agent
create or replace function jobs_internal.get_item(p_kind text, p_path text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    item jsonb;
begin
    if p_kind like 'jobs/executions%' then
        return get_execution(p_kind, p_path);
    end if;
    case p_kind
    when 'credentials' then
        select definition_item(array[c.name], c.credential_id, c.row_version, c.created_by, c.created_at, c.modified_by,
                       c.modified_at, jsonb_build_object('username', c.username)
                       || case when c.secret like 'sealed:%' then '{}'
                               else jsonb_build_object('reference', c.secret) end
                       || credential_item(c))
          into item
          from credential c where lower(c.name) = lower(p_path[1]);
    when 'targetGroups' then
        select definition_item(array[g.name], g.target_group_id, g.row_version, g.created_by, g.created_at, g.modified_by,
                       g.modified_at, jsonb_build_object('members', member_items(g.target_group_id)))
          into item
          from target_group g where lower(g.name) = lower(p_path[1]);
    when 'privateEndpoints' then
        select definition_item(array[e.name], null, e.row_version, e.created_by, e.created_at, e.modified_by, e.modified_at,
                       jsonb_build_object('serverId', e.server_id, 'privateEndpointId', e.private_endpoint_id,
                                          'status', e.status))
          into item
          from private_endpoint e where lower(e.name) = lower(p_path[1]);
    when 'webhooks' then
        select webhook_item(w) into item from webhook w where lower(w.name) = lower(p_path[1]);
    when 'jobs' then
        select job_item(j) into item
          from job j where lower(j.name) = lower(p_path[1]) and j.deleted_at is null and not j.system;
    when 'jobs/versions' then
        select definition_item(array[j.name, v.version::text], null, null, v.created_by, v.created_at,
                       v.created_by, v.created_at, '{}')
          into item
          from job j join job_version v on v.job_id = j.job_id
         where lower(j.name) = lower(p_path[1]) and j.deleted_at is null and not j.system
           and v.version::text = p_path[2];
    when 'jobs/plans' then
        item := get_plan(p_path);
    when 'jobs/steps' then
        select jobstep_item(array[j.name], s, s.row_version)
          into item
          from job j join job_step s on s.job_id = j.job_id and s.version = j.version
         where lower(j.name) = lower(p_path[1]) and j.deleted_at is null and not j.system
           and lower(s.name) = lower(p_path[2]);
    when 'jobs/versions/steps' then
        select jobstep_item(array[j.name, p_path[2]], s, null)
          into item
          from job j join job_step s on s.job_id = j.job_id
         where lower(j.name) = lower(p_path[1]) and j.deleted_at is null and not j.system
           and s.version::text = p_path[2] and lower(s.name) = lower(p_path[3]);
    else
        perform raise_error('MU012', 'p_kind', format('there is no kind %s', p_kind));
    end case;
    if item is null then
        raise exception '% "%" was not found', p_kind, array_to_string(p_path, '" "') using errcode = 'MU010';
    end if;
    return item;
end $$;
comment on function jobs_internal.get_item(text, text[]) is 'A definition or an execution, by the names in its path.';
