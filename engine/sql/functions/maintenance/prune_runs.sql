-- for: owner
create or replace function jobs_internal.prune_runs(p_days integer, out runs integer, out more boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    today constant date := (clock_timestamp() at time zone 'UTC')::date;
    room integer := 20000;
    run record;
    part text;
    rows integer;
    unused uuid[];
begin
    runs := 0;
    more := false;
    for run in
        select x.job_execution_id as id, x.run_day as day
          from job j
         cross join lateral (
               select x.job_execution_id, x.run_day, x.create_time
                 from job_execution x
                where x.job_id = j.job_id
                  and x.create_time < (today - coalesce(j.retention_days, p_days))::timestamp at time zone 'UTC'
                  and x.end_time is not null
                order by x.create_time
                limit 500) x
         order by x.create_time
         limit 500
    loop
        more := true;
        -- By ctid in the one partition of the day: there is only one plan.
        foreach part in array array['task', 'target_execution'] loop
            continue when to_regclass(format('jobs_internal.%I', part || to_char(run.day, '_YYYYMMDD'))) is null;
            execute format('delete from jobs_internal.%1$I where ctid = any(array('
                           'select ctid from jobs_internal.%1$I where run_day = $1 and job_execution_id = $2 limit $3))',
                           part || to_char(run.day, '_YYYYMMDD')) using run.day, run.id, room;
            get diagnostics rows = row_count;
            room := room - rows;
            if room <= 0 then
                return;
            end if;
        end loop;
        with steps as (
            delete from step_execution where run_day = run.day and job_execution_id = run.id returning snapshot_id
        )
        select array_agg(s.snapshot_id) into unused from steps s;
        delete from snapshot s
         where s.snapshot_id = any(unused)
           and not exists (select from step_execution e where e.snapshot_id = s.snapshot_id);
        delete from job_execution x where x.job_execution_id = run.id;
        runs := runs + 1;
    end loop;
end $$;
comment on function jobs_internal.prune_runs(integer) is
    'Deletes a batch of finished runs that are older than the retention of their job, the oldest first; returns '
    'whether there is more.';
