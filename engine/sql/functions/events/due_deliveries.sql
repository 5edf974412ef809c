-- for: engine
create or replace function jobs_internal.due_deliveries(p_epoch bigint, p_limit integer)
returns table (webhook_id uuid, number bigint, name text, url text, secret text, attempts integer, max_attempts integer,
               event_id uuid, kind text, notifications text[], job_execution_id uuid, payload jsonb,
               created_at timestamptz, database_id uuid)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform check_epoch(p_epoch);
    return query
    select w.webhook_id, d.number, w.name, w.url, w.secret, d.attempts, w.max_attempts, e.event_id, e.kind,
           array(select n from unnest(e.notifications) n where n = any(w.events)), e.job_execution_id, e.payload,
           e.created_at, (select i.identity from instance i)
      from webhook w
     cross join lateral (
           select d.* from webhook_delivery d
            where d.webhook_id = w.webhook_id and d.status = 'Pending' and d.not_before <= clock_timestamp()
            order by d.not_before, d.number
            limit p_limit) d
      join event e on e.number = d.number;
end $$;
comment on function jobs_internal.due_deliveries(bigint, integer) is
    'For each webhook the first p_limit deliveries that are due, with all that an attempt needs.';
