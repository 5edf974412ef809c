-- for: owner
create or replace function jobs_internal.change_membership(p_group text, p_role text, p_grant boolean) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    prefix constant text := regexp_replace(current_user::text, 'owner$', '');
    granted text;
begin
    if not exists (select from pg_roles r where r.rolname = p_role) then
        perform raise_error('MU012', 'role', format('role "%s" was not found on this server', p_role));
    elsif starts_with(p_role, prefix) then
        perform raise_error('MU012', 'role', format('role "%s" is one of the account''s own', p_role));
    end if;
    execute format(case when p_grant then 'grant %I to %I' else 'revoke %I from %I' end, prefix || p_group, p_role);
    -- Only the grantor of a membership can revoke it.
    select m.grantor::regrole::text into granted
      from pg_auth_members m
      join pg_roles g on g.oid = m.roleid
      join pg_roles r on r.oid = m.member
     where g.rolname = prefix || p_group and r.rolname = p_role;
    if found and not p_grant then
        perform raise_error('MU013', 'role', format('only %s, who made "%s" a member, can take it back', granted, p_role),
            format('As %s: revoke %I from %I;', granted, prefix || p_group, p_role));
    end if;
    perform write_audit(case when p_grant then 'sp_grant_' else 'sp_revoke_' end || p_group,
                    jsonb_build_object('role', p_role));
end $$;
comment on function jobs_internal.change_membership(text, text, boolean) is
    'Adds a role of the server to the readers, operators or admins of the account, or removes it.';
