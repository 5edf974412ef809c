-- for: agent
create or replace function jobs_internal.begin_command(
    p_id uuid, p_command text, p_digest text, p_caller text, p_door text,
    out known boolean, out result jsonb
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    first command_journal;
begin
    -- A second call with the same id waits here until the transaction of the first one ends.
    insert into command_journal (command_id, command, args_digest, caller, door)
    values (p_id, p_command, p_digest, p_caller, p_door)
    on conflict (command_id) do nothing;
    if found then
        known := false;
        -- current_actor returns this caller until the transaction ends.
        perform set_config('muster.caller', p_caller, true), set_config('muster.door', p_door, true),
                set_config('muster.command_id', p_id::text, true);
        return;
    end if;
    select * into strict first from command_journal j where j.command_id = p_id;
    if (first.command, first.args_digest) <> (p_command, p_digest) then
        raise exception 'command % was sent before, as % with other arguments', p_id, first.command
            using errcode = 'MU002';
    end if;
    known := true;
    result := first.result;
end $$;
comment on function jobs_internal.begin_command(uuid, text, text, text, text) is
    'Returns the result of a command that took effect before. Otherwise the effect and end_command follow in this '
    'transaction.';
