-- for: engine
create or replace function jobs_internal.prune_events(p_epoch bigint, p_days integer, p_number bigint) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    batch_size constant integer := 10000;
    pruned bigint[];
begin
    perform check_epoch(p_epoch);
    with old as (
        select e.number
          from (select o.number, o.created_at from event o order by o.number limit batch_size) e
         where e.created_at < clock_timestamp() - make_interval(days => p_days)
            or e.number <= (select c.last_number - p_number from event_counter c)
               and not exists (select from webhook_delivery d where d.number = e.number and d.status = 'Pending')
    ), deleted as (
        delete from event e using old o where e.number = o.number returning e.number
    )
    select array_agg(d.number) into pruned from deleted d;
    if pruned is not null then
        update event_counter c
           set pruned_number = greatest(c.pruned_number, (select max(p) from unnest(pruned) p));
    end if;
    return coalesce(cardinality(pruned), 0);
end $$;
comment on function jobs_internal.prune_events(bigint, integer, bigint) is
    'Deletes a batch of events, with their deliveries, that are older than p_days; and of those beyond the newest p_number '
    'the ones whose deliveries have ended. Returns how many.';
