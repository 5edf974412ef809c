-- for: owner
create or replace function jobs_internal.prune_slots(p_days integer) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    forgotten integer;
begin
    -- The last one stays: it says up to when the schedule was followed.
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
    get diagnostics forgotten = row_count;
    return forgotten;
end $$;
comment on function jobs_internal.prune_slots(integer) is
    'Slots that are older than their job keeps its history, but for the last one: a bite of them; 0 = none is left.';
