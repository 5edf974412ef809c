-- for: agent
create or replace function jobs_internal.replay_deliveries(p_name text, p_event_ids uuid[]) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    webhook constant uuid := get_item('webhooks', array[p_name]) ->> 'uid';
    unknown uuid;
    replayed integer;
begin
    select g into unknown
      from unnest(p_event_ids) g
     where not exists (select from webhook_delivery d join event e on e.number = d.number
                        where d.webhook_id = webhook and e.event_id = g)
     limit 1;
    if found then
        perform raise_error('MU012', 'event_ids', format('the webhook "%s" has no delivery of the event %s', p_name, unknown));
    end if;
    update webhook_delivery d
       set status = 'Pending', attempts = 0, not_before = clock_timestamp()
      from event e
     where d.webhook_id = webhook and e.number = d.number
       and case when p_event_ids is null then d.status = 'Failed' else e.event_id = any(p_event_ids) end;
    get diagnostics replayed = row_count;
    perform write_audit('replay_deliveries', jsonb_build_object('webhook_name', p_name, 'replayed', replayed));
    return jsonb_build_object('replayed', replayed);
end $$;
comment on function jobs_internal.replay_deliveries(text, uuid[]) is
    'Delivers these events to the webhook again, or if null all dead letters; returns how many.';
