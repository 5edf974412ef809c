-- for: engine
create or replace function jobs_internal.publish_events(p_epoch bigint, p_limit integer) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    first bigint;
    published integer;
begin
    perform check_epoch(p_epoch);
    if not exists (select from outbox) then
        return 0;
    end if;
    -- Held until the commit: the next call gives its numbers after these are visible.
    select c.last_number into strict first from event_counter c for update;
    with taken as (
        delete from outbox o
         where o.entry = any(array(select n.entry from outbox n order by n.entry limit p_limit))
        returning o.*
    ), numbered as (
        insert into event (number, kind, job_id, job_execution_id, notifications, payload, created_at)
        select first + row_number() over (order by t.entry), t.kind, t.job_id, t.job_execution_id, t.notifications,
               case when t.payload ? 'failed' then t.payload - 'failed'
                                                        || describe_failures(t.job_execution_id, t.payload, t.created_at)
                    else t.payload end, t.created_at
          from taken t
        returning number, kind, job_id, notifications, payload
    ), delivery as (
        insert into webhook_delivery (webhook_id, number)
        select w.webhook_id, n.number
          from numbered n
          join webhook w on case n.kind when 'test' then w.webhook_id::text = n.payload ->> 'webhookId'
                                 else w.enabled and w.events && n.notifications end
          left join job j on j.job_id = n.job_id
         where n.kind = 'test' or w.jobs = '{}'
            or exists (select from unnest(w.jobs) g where lower(g) = lower(j.name))
    )
    select count(*) into published from numbered;
    update event_counter set last_number = first + published;
    return published;
end $$;
comment on function jobs_internal.publish_events(bigint, integer) is
    'Numbers events of committed transactions and writes their deliveries; returns how many events got a number.';
