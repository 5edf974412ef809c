-- for: operator, admin
create or replace function jobs.sp_pause() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform set_paused(true);
    perform write_audit('sp_pause', '{}');
end $$;
comment on function jobs.sp_pause() is
    'Nothing new starts in this account until jobs.sp_resume(); running tasks continue.';
