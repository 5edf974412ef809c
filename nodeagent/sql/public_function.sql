begin
:body
exception when others then
    if sqlstate not like 'MU%' then
        raise;
    end if;
    declare
        raised_state text;
        raised_message text;
        raised_hint text;
        raised_column text;
        raised_constraint text;
    begin
        get stacked diagnostics raised_state = returned_sqlstate, raised_message = message_text,
            raised_hint = pg_exception_hint, raised_column = column_name, raised_constraint = constraint_name;
        if raised_hint = '' then
            raise exception using errcode = raised_state, message = raised_message, column = raised_column,
                constraint = raised_constraint;
        end if;
        raise exception using errcode = raised_state, message = raised_message, column = raised_column,
            constraint = raised_constraint, hint = raised_hint;
    end;
end $$;
