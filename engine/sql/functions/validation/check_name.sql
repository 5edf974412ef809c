-- for: owner
create or replace function jobs_internal.check_name(p_name text, p_column text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if char_length(p_name) between 1 and 128
       and p_name !~ $r$[?<>*%&:\\/\u0001-\u001f\u007f-\u009f]|[ .]\Z$r$ then
        return;
    end if;
    perform raise_error('MU012', p_column, p_column || ' has 1 to 128 characters, none of ? < > * % & : \ / or '
        'control characters, and does not end in a space or "."');
end $$;
comment on function jobs_internal.check_name(text, text) is
    'Raises unless a job, step, group, credential or private endpoint may be called so.';
