-- for: agent
create or replace function jobs_internal.read_journal(p_id uuid) returns jsonb
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select jsonb_build_object('known', exists (select from command_journal where command_id = p_id))
$$;
comment on function jobs_internal.read_journal(uuid) is 'Returns whether a command took effect.';
