-- for: engine
create or replace function jobs_internal.next_slot(p_epoch bigint) returns double precision
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    next timestamptz;
begin
    perform check_epoch(p_epoch);
    select j.next_slot into next
      from job j
     where j.next_slot < 'infinity' and j.enabled and not j.system
     order by j.next_slot
     limit 1;
    return extract(epoch from next - clock_timestamp());
end $$;
comment on function jobs_internal.next_slot(bigint) is
    'Seconds until the next slot: null when none is computed, 0 or less when one is due.';
