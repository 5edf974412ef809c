-- for: owner
create or replace function jobs_internal.check_verify_query(p_text text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $body$
declare
    marks constant text := $r$([eE]'|''|""|--|/\*|\*/|\$\([A-Za-z_][A-Za-z0-9_.]*\)|\$[A-Za-z0-9_]*\$$r$
        || $r$|[A-Za-z_][A-Za-z0-9_$]*|[\n\r]|\S)$r$;
    mark text;
    inside text := '';  -- what opened it: -- /* ' e' " or a tag of dollars
    depth integer := 0;  -- of comments
    escaped boolean := false;  -- by a backslash
    first text;  -- word
    ended boolean := false;  -- by a semicolon
    wrong text := case when length(p_text) > 65536 then 'has more than 65536 characters' end;
begin
    for mark in select lower(m[1]) from regexp_matches(p_text, marks, 'g') m where wrong is null loop
        if inside = '--' then
            inside := case when mark in (E'\n', E'\r') then '' else inside end;
        elsif inside = '/*' then
            depth := depth + case mark when '/*' then 1 when '*/' then -1 else 0 end;
            inside := case when depth = 0 then '' else inside end;
        elsif inside = 'e''' then
            inside := case when mark = '''' and not escaped or mark = '''''' and escaped then '' else inside end;
            escaped := mark = E'\\' and not escaped;
        elsif inside <> '' then
            inside := case when mark = inside then '' else inside end;
        elsif mark in ('--', '/*', '''', 'e''', '"') or mark like '$%$' then
            inside := mark;
            depth := 1;
            escaped := false;
        elsif mark = ';' then
            ended := first is not null;
        elsif mark not in (E'\n', E'\r', '(') then
            first := coalesce(first, mark);
            wrong := case
                when ended then 'is more than one statement'
                when first not in ('select', 'values', 'table', 'with') then
                    'does not begin with SELECT, VALUES, TABLE or WITH'
                when mark in ('insert', 'update', 'delete', 'merge', 'into') then
                    format('has the word %s, which writes or locks rows', upper(mark))
            end;
        end if;
        exit when wrong is not null;
    end loop;
    if wrong is not null then
        perform raise_error('MU012', 'options', 'options.verify.sql ' || wrong,
            'A verify query is one statement that only reads; put a name that is such a word in double quotes.');
    end if;
end $body$;
comment on function jobs_internal.check_verify_query(text) is
    'Raises when the text is not one query, or has a word by which it would write. The host judges by PostgreSQL''s '
    'grammar before it sends anything.';
