-- for: admin
create or replace function jobs.sp_revoke_reader(role text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform change_membership('reader', role, false);
end $$;
comment on function jobs.sp_revoke_reader(text) is 'Revokes the rights that jobs.sp_grant_reader granted.';
