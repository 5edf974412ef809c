-- for: engine
create or replace function jobs_internal.drop_partitions(p_before date) returns setof date
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set lock_timeout = '2s'
as $$
declare
    today constant date := (clock_timestamp() at time zone 'UTC')::date;
    oldest constant timestamptz := p_before::timestamp at time zone 'UTC';
    day date;
    parent text;
begin
    for day in
        select to_date(right(c.relname, 8), 'YYYYMMDD') as day
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'jobs_internal.step_execution'::regclass
         order by 1
    loop
        exit when day >= p_before;
        continue when exists (
            select from job_execution x join job j on j.job_id = x.job_id
             where x.create_time >= day::timestamp at time zone 'UTC'
               and x.create_time < (day + 1)::timestamp at time zone 'UTC'
               and (x.end_time is null or day + j.retention_days >= today));
        begin
            foreach parent in array array['step_execution', 'target_execution', 'task'] loop
                execute format('drop table jobs_internal.%I', parent || to_char(day, '_YYYYMMDD'));
            end loop;
            delete from job_execution
             where create_time >= day::timestamp at time zone 'UTC'
               and create_time < (day + 1)::timestamp at time zone 'UTC';
            return next day;
        exception when lock_not_available then
            -- A long query reads the partition: the next call drops it.
            exit;
        end;
    end loop;
    perform delete_orphans(oldest);
end $$;
comment on function jobs_internal.drop_partitions(date) is
    'Drops the days before a day, except days with a live run or with a run that its job keeps longer; returns the '
    'dropped days.';
