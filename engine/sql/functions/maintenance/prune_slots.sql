-- for: owner
create or replace function jobs_internal.prune_slots(p_days integer) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    deleted integer;
begin
    -- The last slot is kept: the next slot is computed from it.
    with old as (
        select j.job_id, s.slot
          from job j
         cross join lateral (
               select max(s.slot) as slot from slot s where s.job_id = j.job_id and s.slot <= now) last
         cross join lateral (
               select s.slot
                 from slot s
                where s.job_id = j.job_id
                  and s.slot < now - make_interval(days => coalesce(j.retention_days, p_days))
                  and s.slot < last.slot
                order by s.slot
                limit 5000) s
         limit 20000
    )
    delete from slot s using old o where (s.job_id, s.slot) = (o.job_id, o.slot);
    get diagnostics deleted = row_count;
    return deleted;
end $$;
comment on function jobs_internal.prune_slots(integer) is
    'Deletes a batch of slots that are older than the retention of their job, except the last slot of each job; '
    'returns 0 when none is left.';
