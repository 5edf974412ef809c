-- for: owner
create or replace function jobs_internal.check_name(p_name text, p_column text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if char_length(p_name) between 1 and 128
       and p_name ~ '^[\x20-\x7e]+$'
       and p_name !~ $r$[?<>*%&:\\/"]|^ |[ .]\Z$r$
       and lower(p_name) !~ '^(con|prn|aux|nul|com[1-9]|lpt[1-9])$' then
        return;
    end if;
    perform raise_error('MU012', p_column, p_column || ' has 1 to 128 visible ASCII characters, none of ? < > * % & : \ / ", '
        'does not begin with a space or end in a space or ".", and is no device name such as con');
end $$;
comment on function jobs_internal.check_name(text, text) is
    'Raises unless the name is valid for a job, step, group, credential or private endpoint; REST has the same rule.';
