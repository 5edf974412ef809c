-- for: agent
create or replace function jobs_internal.put_target_group(p_name text, p_doc jsonb, p_condition jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wanted constant jsonb := coalesce(p_doc -> 'members', '[]');
    old target_group;
    id uuid;
    members jsonb;
    servers jsonb;
begin
    perform lock_name('target group', p_name);
    select * into old from target_group g where lower(g.name) = lower(p_name) for no key update;
    perform check_condition(p_condition, old.row_version);
    id := case when old.target_group_id is null then sp_add_target_group(p_name) else old.target_group_id end;
    members := member_items(id);
    select coalesce(jsonb_object_agg(lower(m.server_name), m.server_id), '{}') into servers
      from target_group_member m where m.target_group_id = id and m.server_name is not null;
    delete from target_group_member m where m.target_group_id = id;
    perform add_members(id, wanted, members, servers);
    if old.target_group_id is not null and members <> member_items(id) then
        perform bump_group_version(id);
        perform write_audit('put_target_group', jsonb_build_object(
            'target_group_name', old.name, 'members', jsonb_array_length(wanted)));
    end if;
    return jsonb_build_object('created', old.target_group_id is null, 'item', get_item('targetGroups', array[p_name]));
end $$;
comment on function jobs_internal.put_target_group(text, jsonb, jsonb) is
    'Replaces the members of a group; members that it had before keep their target_id.';
