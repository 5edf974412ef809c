-- for: owner
create or replace function jobs_internal.next_checkpoint(p_old jsonb, p_new jsonb, p_attempt integer) returns jsonb
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return case when p_new is null then p_old
                when p_new = '{}' then p_new
                else jsonb_build_object('attempt', p_attempt) || coalesce(p_old, '{}') || p_new end;
end $$;
comment on function jobs_internal.next_checkpoint(jsonb, jsonb, integer) is
    'The checkpoint of a target after a report of this attempt. The attempt that sent the script stays in it until an '
    'empty checkpoint lets the next attempt send the script.';
