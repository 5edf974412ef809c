-- for: owner
create or replace function jobs_internal.current_actor(out caller text, out door text, out command_id uuid)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- Anybody can set these; only the agent's word counts. Its role is named beside the owner's, who runs this.
    if session_user::text = regexp_replace(current_user::text, '_owner$', '_agent') then
        caller := nullif(current_setting('muster.caller', true), '');
        door := nullif(current_setting('muster.door', true), '');
        command_id := nullif(current_setting('muster.command_id', true), '')::uuid;
    end if;
    caller := coalesce(caller, session_user);
    door := coalesce(door, 'psql');
end $$;
comment on function jobs_internal.current_actor() is
    'Who does this and by which door: whom the agent speaks for, or the login itself.';
