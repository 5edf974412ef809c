-- for: admin
create or replace function jobs.sp_revoke_admin(role text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform change_membership('admin', role, false);
end $$;
comment on function jobs.sp_revoke_admin(text) is 'Revokes the rights that jobs.sp_grant_admin granted.';
