-- for: owner
create or replace function jobs_internal.selector_error(p_selector text) returns text
language plpgsql immutable strict security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    label constant text := '[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?';
    value constant text := $r$[^ ,()=!"'\u0001-\u001f\u007f-\u009f]+$r$;
    -- A requirement, and the comma after it.
    requirement constant text := format(
        '^( *(?:! *%1$s|%1$s(?: *(?:==|=|!=) *%2$s| +(?:in|notin) *\( *%2$s *(?:, *%2$s *)*\))?) *)(,|\Z)',
        label, value);
    rest text := p_selector;
    part text[];
    number integer := 0;
begin
    if octet_length(p_selector) not between 1 and 2048 then
        return 'labels has 1 to 2048 bytes, for example tier=gold,region in (eu,us),!legacy';
    end if;
    loop
        part := regexp_match(rest, requirement);
        number := number + 1;
        if part is null then
            return format('labels, position %s: expected key, !key, key=value, key!=value, key in (a,b) or '
                'key notin (a,b), joined by commas; for example tier=gold,region in (eu,us),!legacy',
                length(p_selector) - length(ltrim(rest, ' ')) + 1);
        elsif number > 32 then
            return 'labels has at most 32 requirements';
        end if;
        exit when part[2] = '';
        rest := substr(rest, length(part[1]) + 2);
    end loop;
    return null;
end $$;
comment on function jobs_internal.selector_error(text) is
    'Why the text is no label selector, null when it is one. muster/core/label_selector.py reads the same notation.';
