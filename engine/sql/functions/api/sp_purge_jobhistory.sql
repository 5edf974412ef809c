-- for: admin
create or replace function jobs.sp_purge_jobhistory(
    job_name text default null, job_id uuid default null, oldest_date timestamptz default null
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    purged job;
    gone uuid[];
    days date[];
    unused uuid[];
begin
    if num_nonnulls(sp_purge_jobhistory.job_name, sp_purge_jobhistory.job_id) <> 1 then
        raise exception 'exactly one of job_name and job_id is needed' using errcode = 'MU012', column = 'job_name';
    end if;
    select * into purged from job j
     where (lower(j.name) = lower(sp_purge_jobhistory.job_name) and j.deleted_at is null)
        or j.job_id = sp_purge_jobhistory.job_id;
    if not found then
        raise exception 'job "%" was not found',
              coalesce(sp_purge_jobhistory.job_name, sp_purge_jobhistory.job_id::text)
            using errcode = 'MU010',
                  column = case when sp_purge_jobhistory.job_id is null then 'job_name' else 'job_id' end;
    end if;
    select array_agg(x.job_execution_id), array_agg(distinct x.run_day)
      into gone, days
      from job_execution x
     where x.job_id = purged.job_id
       and x.end_time is not null
       and x.create_time < coalesce(sp_purge_jobhistory.oldest_date, 'infinity');
    delete from task where run_day = any(days) and job_execution_id = any(gone);
    delete from target_execution where run_day = any(days) and job_execution_id = any(gone);
    with steps as (
        delete from step_execution where run_day = any(days) and job_execution_id = any(gone) returning snapshot_id
    )
    select array_agg(distinct s.snapshot_id) into unused from steps s;
    delete from snapshot s
     where s.snapshot_id = any(unused)
       and not exists (select from step_execution e where e.snapshot_id = s.snapshot_id);
    delete from job_execution where job_execution_id = any(gone);
    delete from job j
     where j.job_id = purged.job_id
       and j.deleted_at is not null
       and not exists (select from job_execution x where x.job_id = j.job_id);
    perform write_audit('sp_purge_jobhistory', jsonb_build_object(
        'job_name', purged.name, 'job_id', purged.job_id, 'oldest_date', sp_purge_jobhistory.oldest_date,
        'executions', coalesce(cardinality(gone), 0)));
end $$;
comment on function jobs.sp_purge_jobhistory(text, uuid, timestamptz) is
    'Deletes the finished runs of a job that are older than oldest_date, or all; a deleted job is removed with its '
    'last run.';
