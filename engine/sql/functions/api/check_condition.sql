-- for: owner
create or replace function jobs_internal.check_condition(p_condition jsonb, p_row_version bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_row_version is not null and p_condition ->> 'ifNoneMatch' = '*' then
        raise exception 'the resource exists, against If-None-Match' using errcode = 'MU014';
    elsif p_condition ? 'ifMatch' and p_row_version is null then
        raise exception 'the resource does not exist, against If-Match' using errcode = 'MU014';
    elsif p_condition ->> 'ifMatch' <> '*' and not p_condition -> 'ifMatch' ? p_row_version::text then
        raise exception 'the resource was changed since it was read, against If-Match' using errcode = 'MU014';
    end if;
end $$;
comment on function jobs_internal.check_condition(jsonb, bigint) is
    'Raises unless the row_version of an object (null: there is no object) is the one that the caller expects.';
