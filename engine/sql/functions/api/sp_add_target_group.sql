-- for: admin
create or replace function jobs.sp_add_target_group(target_group_name text, out target_group_id uuid)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
begin
    perform check_name(target_group_name, 'target_group_name');
    insert into target_group as g (name, created_by, modified_by)
    select target_group_name, a.caller, a.caller from current_actor() a
    on conflict do nothing
    returning g.target_group_id into sp_add_target_group.target_group_id;
    if not found then
        perform raise_error('MU011', 'target_group_name',
            format('there is already a target group "%s"', target_group_name));
    end if;
    perform write_audit('sp_add_target_group', jsonb_build_object('target_group_name', target_group_name));
end $$;
comment on function jobs.sp_add_target_group(text) is 'A target group without members.';
