-- for: owner
create or replace function jobs_internal.edit_distance(p_one text, p_other text) returns integer
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    above integer[] := array(select generate_series(0, length(p_other)));
    line integer[];
begin
    for i in 1 .. length(p_one) loop
        line := array[i];
        for j in 1 .. length(p_other) loop
            line := line || least(above[j + 1] + 1, line[j] + 1,
                                  above[j] + (substr(p_one, i, 1) <> substr(p_other, j, 1))::integer);
        end loop;
        above := line;
    end loop;
    return above[length(p_other) + 1];
end $$;
comment on function jobs_internal.edit_distance(text, text) is
    'The number of letters to insert, delete or replace to turn one text into the other.';
