-- for: engine
create or replace function jobs_internal.disable_broken_schedule(
    p_epoch bigint, p_job_id uuid, p_row_version bigint, p_why text
) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    broken text;
begin
    perform check_epoch(p_epoch);
    update job j
       set next_slot = 'infinity'
     where j.job_id = p_job_id and j.row_version = p_row_version and j.enabled and j.deleted_at is null
    returning j.name into broken;
    if broken is null then
        return false;
    end if;
    perform write_audit('break_schedule', jsonb_build_object('job_name', broken, 'why', left(p_why, 1000)));
    return true;
end $$;
comment on function jobs_internal.disable_broken_schedule(bigint, uuid, bigint, text) is
    'Disables a schedule that can''t be computed until it is edited; the audit has the reason.';
