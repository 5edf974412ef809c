-- for: owner
create or replace function jobs_internal.current_actor(out caller text, out door text, out command_id uuid)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- Every login can set these settings; they count only for the agent, whose role is named after the owner's role.
    if session_user::text = regexp_replace(current_user::text, '_owner$', '_agent') then
        caller := nullif(current_setting('muster.caller', true), '');
        door := nullif(current_setting('muster.door', true), '');
        command_id := nullif(current_setting('muster.command_id', true), '')::uuid;
    end if;
    caller := coalesce(caller, session_user);
    door := coalesce(door, 'psql');
end $$;
comment on function jobs_internal.current_actor() is
    'The actor of the current transaction and the door it came by: the caller that the agent names, or the login '
    'itself.';
