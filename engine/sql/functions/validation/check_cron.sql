-- for: owner
create or replace function jobs_internal.check_cron(p_cron text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    fields constant text[] := string_to_array(regexp_replace(lower(btrim(p_cron)), $r$\s+$r$, ' ', 'g'), ' ');
    labels constant text[] := array['minute', 'hour', 'day of the month', 'month', 'day of the week'];
    lowest constant integer[] := array[0, 0, 1, 1, 0];
    highest constant integer[] := array[59, 23, 31, 12, 7];
    months constant text[] := array['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
    days constant text[] := array['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
    item text;
    part text[];
    ends integer[];
begin
    if fields[1] in ('@hourly', '@daily', '@weekly', '@monthly', '@yearly') and cardinality(fields) = 1 then
        return;
    end if;
    if cardinality(fields) <> 5 then
        perform raise_error('MU012', 'schedule_cron', 'schedule_cron has five fields (minute hour day month weekday), '
            'or is @hourly, @daily, @weekly, @monthly or @yearly');
    end if;
    for i in 1 .. 5 loop
        foreach item in array string_to_array(fields[i], ',') loop
            part := regexp_match(item, $r$^(?:\*|(\d{1,2}|[a-z]{3})(-(\d{1,2}|[a-z]{3}))?)(/([1-9]\d?))?\Z$r$);
            -- A name counts where its field has names.
            ends := array(select case when v ~ '^[0-9]' then v::integer
                                      when i = 4 then array_position(months, v)
                                      when i = 5 then array_position(days, v) - 1 end
                            from unnest(array[part[1], coalesce(part[3], part[1])]) with ordinality u (v, n)
                           where v is not null
                           order by n);
            if part is null or array_position(ends, null) is not null
               or not (lowest[i] <= all (ends) and highest[i] >= all (ends)) or ends[1] > ends[2]
               or (part[4] is not null and part[1] is not null and part[2] is null) then
                perform raise_error('MU012', 'schedule_cron', format(
                    'schedule_cron: "%s" is no %s; right are *, a number from %s to %s%s, a range as 1-5, '
                    'a step as */2 or 1-5/2, and lists of them', item, labels[i], lowest[i], highest[i],
                    case i when 4 then ' or jan to dec' when 5 then ' or sun to sat' else '' end));
            end if;
        end loop;
    end loop;
end $$;
comment on function jobs_internal.check_cron(text) is 'Raises unless the text is a schedule in the form of cron.';
