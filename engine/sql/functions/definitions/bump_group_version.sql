-- for: owner
create or replace function jobs_internal.bump_group_version(p_group uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    update target_group g
       set row_version = nextval('row_version'), modified_by = a.caller, modified_at = clock_timestamp()
      from current_actor() a
     where g.target_group_id = p_group;
end $$;
comment on function jobs_internal.bump_group_version(uuid) is
    'Gives the group a new row_version after its members have changed.';
