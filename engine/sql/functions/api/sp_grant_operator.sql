-- for: admin
create or replace function jobs.sp_grant_operator(role text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform change_membership('operator', role, true);
end $$;
comment on function jobs.sp_grant_operator(text) is
    'Lets a role of the server start, stop, pause and resume jobs, and read.';
