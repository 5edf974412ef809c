-- for: admin
create or replace function jobs.sp_delete_target_group_member(target_group_name text, target_id uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant target_group := lock_group(target_group_name);
begin
    delete from target_group_member m
     where m.target_group_id = edited.target_group_id and m.target_id = sp_delete_target_group_member.target_id;
    if not found then
        perform raise_error('MU010', 'target_id', format('target group "%s" has no member %s', edited.name, target_id));
    end if;
    perform bump_group_version(edited.target_group_id);
    perform write_audit('sp_delete_target_group_member', jsonb_build_object(
        'target_group_name', edited.name, 'target_id', target_id));
end $$;
comment on function jobs.sp_delete_target_group_member(text, uuid) is 'Removes a member of a target group.';
