-- for: admin
create or replace function jobs.sp_grant_reader(role text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform change_membership('reader', role, true);
end $$;
comment on function jobs.sp_grant_reader(text) is 'Lets a role of the server read the views of schema jobs.';
