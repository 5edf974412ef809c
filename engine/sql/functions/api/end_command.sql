-- for: agent
create or replace function jobs_internal.end_command(p_id uuid, p_result jsonb) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    with ended as (
        update command_journal
           set result = p_result
         where command_id = p_id and result is null
        returning command_id, command, caller, door
    )
    insert into audit (action, caller, login, door, command_id)
    select command, caller, session_user, door, command_id
      from ended e
     where not exists (select from audit a where a.command_id = e.command_id);
    delete from command_journal where at < clock_timestamp() - interval '30 days';
end $$;
comment on function jobs_internal.end_command(uuid, jsonb) is
    'Stores the first result of a command for a month, and its caller in the audit for good, unless the effect wrote '
    'the audit itself.';
