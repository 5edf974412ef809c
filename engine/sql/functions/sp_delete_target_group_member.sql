-- for: admin
create or replace function jobs.sp_delete_target_group_member(target_group_name text, target_id uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant target_group := lock_group_v1(target_group_name);
begin
    delete from target_group_member m
     where m.target_group_id = edited.target_group_id and m.target_id = sp_delete_target_group_member.target_id;
    if not found then
        perform refuse_v1('MU010', 'target_id', format('target group "%s" has no member %s', edited.name, target_id));
    end if;
    perform touch_group_v1(edited.target_group_id);
    perform note_v1('sp_delete_target_group_member', jsonb_build_object(
        'target_group_name', edited.name, 'target_id', target_id));
end $$;
comment on function jobs.sp_delete_target_group_member(text, uuid) is
    'What the member took in or left out, it does no more.';
