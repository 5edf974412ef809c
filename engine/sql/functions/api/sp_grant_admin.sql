-- for: admin
create or replace function jobs.sp_grant_admin(role text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform change_membership('admin', role, true);
end $$;
comment on function jobs.sp_grant_admin(text) is 'Lets a role of the server do everything in schema jobs.';
