-- for: owner
create or replace function jobs_internal.write_audit(p_action text, p_detail jsonb) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    insert into audit (action, caller, login, door, command_id, detail)
    select p_action, a.caller, session_user, a.door, a.command_id, jsonb_strip_nulls(p_detail) from current_actor() a;
end $$;
comment on function jobs_internal.write_audit(text, jsonb) is
    'Writes a change to the audit: the action and the names that it changed.';
