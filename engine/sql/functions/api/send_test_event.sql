-- for: agent
create or replace function jobs_internal.send_test_event(p_name text) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    test constant uuid := gen_random_uuid();
    webhook constant jsonb := get_item('webhooks', array[p_name]);
begin
    insert into outbox (kind, payload)
    select 'test', jsonb_build_object('webhookId', webhook ->> 'uid', 'webhookName', webhook ->> 'name', 'testId', test,
                                      'requestedBy', a.caller)
      from current_actor() a;
    perform write_audit('send_test_event', jsonb_build_object('webhook_name', webhook ->> 'name'));
    return jsonb_build_object('testId', test);
end $$;
comment on function jobs_internal.send_test_event(text) is 'Writes an event of kind test, which only this webhook gets.';
