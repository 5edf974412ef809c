-- for: owner
create or replace function jobs_internal.raise_error(
    p_state text, p_column text, p_message text, p_hint text default null, p_code text default ''
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_hint is null then
        raise exception using errcode = p_state, column = p_column, message = p_message, constraint = p_code;
    end if;
    raise exception using errcode = p_state, column = p_column, message = p_message, constraint = p_code, hint = p_hint;
end $$;
comment on function jobs_internal.raise_error(text, text, text, text, text) is
    'Raises an error: SQLSTATE, the wrong parameter, the message, a hint, and a REST code where one fits best.';
