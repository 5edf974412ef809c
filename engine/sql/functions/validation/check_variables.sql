-- for: owner
create or replace function jobs_internal.check_variables(p_text text, p_column text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    variables constant text[] := array['job_name', 'job_id', 'job_version', 'step_id', 'step_name', 'job_execution_id',
        'job_execution_create_time', 'target_group_name', 'target_server_name', 'target_database_name',
        'target_schema_name', 'attempt'];
    mark text;
    line boolean := false;  -- after --
    block boolean := false;  -- after /*
    wrong text;  -- after /* it counts only if the comment is never closed
begin
    if position('$(' in p_text) = 0 then
        return;
    end if;
    -- Mark by mark: a pattern of whole comments would read the rest of the text again for each /* that is not closed.
    for mark in select m[1] from regexp_matches(p_text, $r$(--|\n+|/\*|\*/|\$\([A-Za-z_][A-Za-z0-9_.]*\))$r$, 'g') m loop
        if mark = '--' then
            line := true;
        elsif mark like E'\n%' then
            line := false;
        elsif mark = '/*' then
            block := block or not line;
        elsif mark = '*/' and block then
            block := false;
            line := false;
            wrong := null;
        elsif mark like '$%' and not line then
            mark := substr(mark, 3, length(mark) - 3);
            if mark <> all (variables) and mark !~ $r$^target_label\.[A-Za-z0-9_]+\Z$r$ then
                wrong := coalesce(wrong, mark);
                exit when not block;
            end if;
        end if;
    end loop;
    if wrong is not null then
        perform raise_error('MU012', p_column, format('%s: there is no variable $(%s)', p_column, wrong),
            'Known are ' || array_to_string(variables, ', ') || ' and target_label.<name>.');
    end if;
    wrong := text_in_body(p_text);
    if wrong is not null then
        perform raise_error('MU012', p_column,
            format('%s: $(%s) is text and stands in a dollar-quoted body', p_column, wrong),
            format('Read current_setting(''muster.%s'', true) there.', wrong));
    end if;
end $$;
comment on function jobs_internal.check_variables(text, text) is
    'Raises when the text names a variable that does not exist, or a text variable in a dollar-quoted body; comments do not count.';
