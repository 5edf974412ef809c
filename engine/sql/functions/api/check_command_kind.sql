-- for: owner
create or replace function jobs_internal.check_command_kind(p_type text, p_source text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if lower(p_type) <> 'tsql' then
        perform raise_error('MU012', 'command_type', 'command_type is TSql, which stands for SQL');
    elsif lower(p_source) <> 'inline' then
        perform raise_error('MU012', 'command_source', 'command_source is Inline');
    end if;
end $$;
comment on function jobs_internal.check_command_kind(text, text) is
    'Raises unless the command is inline SQL, the only kind that is supported.';
