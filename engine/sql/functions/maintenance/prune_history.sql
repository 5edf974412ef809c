-- for: engine
create or replace function jobs_internal.prune_history(
    p_epoch bigint, p_days integer, out days integer, out runs integer, out more boolean
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    batch_size constant integer := 10000;
    today constant date := (clock_timestamp() at time zone 'UTC')::date;
    day date;
begin
    perform check_epoch(p_epoch);
    days := 0;
    more := true;
    for day in
        select to_date(right(c.relname, 8), 'YYYYMMDD') as day
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'jobs_internal.step_execution'::regclass
         order by 1
    loop
        exit when day >= today - p_days;
        continue when exists (
            select from job_execution x join job j on j.job_id = x.job_id
             where x.create_time >= day::timestamp at time zone 'UTC'
               and x.create_time < (day + 1)::timestamp at time zone 'UTC'
               and (x.end_time is null or day + j.retention_days >= today));
        -- The runs of the day in batches, the partitions at once. Meanwhile no query reads the rows of deleted runs.
        delete from job_execution
         where job_execution_id = any(array(
               select x.job_execution_id from job_execution x
                where x.create_time >= day::timestamp at time zone 'UTC'
                  and x.create_time < (day + 1)::timestamp at time zone 'UTC'
                limit batch_size));
        get diagnostics runs = row_count;
        if runs = batch_size then
            return;
        end if;
        select count(*) into days from drop_partitions(day + 1);
        if days > 0 then
            return;
        end if;
        -- A long query reads the partition: the next call drops it.
        exit;
    end loop;
    select p.runs, p.more into runs, more from prune_runs(p_days) p;
    more := more
            or prune_slots(p_days) > 0
            or prune_versions() > 0
            or delete_orphans((today - p_days)::timestamp at time zone 'UTC') > 0;
end $$;
comment on function jobs_internal.prune_history(bigint, integer) is
    'Deletes a batch of expired history: a whole day, or runs with a shorter retention, slots and deleted jobs. Jobs '
    'without a retention of their own keep p_days days. Returns the deleted days and runs, and whether there is '
    'more.';
