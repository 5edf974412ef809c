-- for: owner
create or replace function jobs_internal.list_deliveries(p_name text, p_after jsonb, p_top integer, p_filters jsonb)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    webhook constant uuid := get_item('webhooks', array[p_name]) ->> 'uid';
    wanted constant text[] := (select w.events from webhook w where w.webhook_id = webhook);
begin
    return (
        with next as (
            select d.*, e.event_id, e.kind, e.notifications, e.created_at, e.job_execution_id, e.payload ->> 'jobName' as job_name,
                   row_number() over (order by d.number desc) as place
              from (select d.* from webhook_delivery d
                     where d.webhook_id = webhook
                       and (p_after is null or d.number < (p_after ->> 'number')::bigint)
                       and (p_filters ->> 'status' is null or lower(d.status) = lower(p_filters ->> 'status'))
                     order by d.number desc
                     limit p_top + 1) d
              join event e on e.number = d.number
        )
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(jsonb_build_object(
                       'name', n.event_id, 'path', jsonb_build_array(p_name, n.event_id), 'properties',
                       jsonb_strip_nulls(jsonb_build_object(
                           'eventId', n.event_id, 'number', n.number, 'kind', n.kind,
                           'events', (select jsonb_agg(event) from unnest(n.notifications) event
                                       where event = any(wanted)),
                           'jobName', n.job_name,
                           'jobExecutionId', n.job_execution_id, 'status', n.status, 'attempts', n.attempts,
                           'eventTime', iso_time(n.created_at), 'lastAttemptTime', iso_time(n.last_attempt_at),
                           'nextAttemptTime', case n.status when 'Pending' then iso_time(n.not_before) end,
                           'lastStatusCode', n.last_status_code, 'lastError', n.last_error)))
                       order by n.place) filter (where n.place <= p_top), '[]'),
                   'next', case when count(*) > p_top then
                               jsonb_build_object('number', min(n.number) filter (where n.place <= p_top)) end)
          from next n);
end $$;
comment on function jobs_internal.list_deliveries(text, jsonb, integer, jsonb) is
    'A page of the deliveries of a webhook, those of the newest events first; the filter `status` chooses one status.';
