-- for: admin
create or replace function jobs.sp_delete_target_group(target_group_name text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    gone constant target_group := lock_group(target_group_name);
    users text;
begin
    -- Another transaction that refers to the group has ended before, or finds no group.
    perform from target_group g where g.target_group_id = gone.target_group_id for update;
    users := used_by(gone.target_group_id);
    if users is not null then
        perform raise_error('MU013', 'target_group_name', format('target group "%s" is used by %s', gone.name, users));
    end if;
    delete from target_group g where g.target_group_id = gone.target_group_id;
    perform write_audit('sp_delete_target_group', jsonb_build_object('target_group_name', gone.name));
end $$;
comment on function jobs.sp_delete_target_group(text) is
    'Deletes a target group, with its members, that no current step and no other group names.';
