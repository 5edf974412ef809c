-- for: engine
create or replace function jobs_internal.create_partitions(p_epoch bigint) returns date[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    today constant date := (clock_timestamp() at time zone 'UTC')::date;
    made date[] := '{}';
    day date;
begin
    perform check_epoch(p_epoch);
    foreach day in array array[today, today + 1] loop
        if to_regclass('jobs_internal.task' || to_char(day, '_YYYYMMDD')) is null then
            perform ensure_partitions(day);
            made := made || day;
        end if;
    end loop;
    return made;
end $$;
comment on function jobs_internal.create_partitions(bigint) is
    'Creates the partitions for runs of today and tomorrow; returns the days that were missing.';
