-- for: operator, admin
create or replace function jobs.sp_resume() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform set_paused(false);
    perform write_audit('sp_resume', '{}');
end $$;
comment on function jobs.sp_resume() is 'Ends jobs.sp_pause(): jobs and tasks start again.';
