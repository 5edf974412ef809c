-- for: owner
create or replace function jobs_internal.text_in_body(p_text text) returns text
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $body$
declare
    texts constant text := '(?:job_name|step_name|job_execution_create_time|target_group_name|target_server_name'
        '|target_database_name|target_schema_name)';
    letters constant text := $r$A-Za-z0-9_\u0080-\uffff$r$;
    -- Every character is in one mark, so what follows a mark touches it.
    marks constant text := format(
        $r$(\$\(%s\)|\$|--|/\*|\*/|[-/*'"\\\n\r]|[%s]+|[^-/*'"\\\n\r$%s]+)$r$, texts, letters, letters);
    mark text;
    inside text := '';  -- what opened it: -- /* ' e' " or a tag of dollars
    depth integer := 0;  -- of comments
    name text := '';  -- the beginning of an identifier: enough to distinguish E
    tag text := '';  -- what is read of a tag of dollars
    closed text := '';  -- the quote that was closed by the last mark; another one opens it again
    escaped boolean := false;  -- by a backslash
begin
    -- Labels have values of any kind: the host refuses those that do not fit.
    if p_text !~ format($r$\$\(%s\)$r$, texts) or p_text !~ format($r$\$(?:[%s]*)\$$r$, letters) then
        return null;
    end if;
    for mark in select m[1] from regexp_matches(p_text, marks, 'g') m loop
        if inside = '--' then
            if mark in (E'\n', E'\r') then
                inside := '';
            end if;
        elsif inside = '/*' then
            depth := depth + case mark when '/*' then 1 when '*/' then -1 else 0 end;
            if depth = 0 then
                inside := '';
            end if;
        elsif inside like '$%' then
            if mark like '$%' and tag || '$' = inside then
                inside := '';
                tag := '';
            elsif mark like '$(%' then
                return substr(mark, 3, length(mark) - 3);
            else
                tag := case when mark = '$' then mark when tag = '$' then tag || mark else '' end;
            end if;
        elsif inside = 'e''' then
            if mark = '''' and not escaped then
                closed := inside;
                inside := '';
            end if;
            escaped := mark = E'\\' and not escaped;
        elsif inside <> '' then
            if mark = inside then
                closed := inside;
                inside := '';
            end if;
        else
            if mark like '$%' and tag <> '' then
                inside := tag || '$';
            elsif mark = '$' and name = '' then
                tag := mark;
            elsif mark = '$' then
                name := left(name || mark, 2);
            elsif mark ~ format('^[%s]', letters) then
                tag := case when tag = '$' and mark !~ '^[0-9]' then tag || mark else '' end;
                name := case when tag = '' then left(name || mark, 2) else '' end;
            else
                inside := case
                    when mark = '''' and closed = 'e''' then closed
                    when mark = '''' and lower(name) = 'e' then 'e'''
                    when mark in ('--', '/*', '''', '"') then mark
                    else ''
                end;
                depth := (inside = '/*')::integer;
                name := '';
                tag := '';
            end if;
            if inside <> '' then
                name := '';
                tag := '';
            end if;
            closed := '';
        end if;
    end loop;
    return null;
end $body$;
comment on function jobs_internal.text_in_body(text) is
    'The name of a text variable that stands in a dollar-quoted body of the script; null when there is none.';
