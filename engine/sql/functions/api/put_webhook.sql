-- for: agent
create or replace function jobs_internal.put_webhook(p_name text, p_doc jsonb, p_condition jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    most constant integer := 50;
    old webhook;
begin
    perform lock_name('webhook', '');
    select * into old from webhook w where lower(w.name) = lower(p_name) for no key update;
    perform check_condition(p_condition, old.row_version);
    if old.name is null then
        perform check_name(p_name, 'webhook_name');
        if p_doc ->> 'secret' is null then
            perform raise_error('MU012', 'secret', 'a new webhook needs a secret, with which requests are signed');
        elsif (select count(*) from webhook) >= most then
            perform raise_error('MU013', 'webhook_name', format('an account has at most %s webhooks', most));
        end if;
    end if;
    insert into webhook as w (webhook_id, name, url, secret, events, jobs, enabled, max_attempts, created_by, modified_by)
    select coalesce(old.webhook_id, gen_random_uuid()), coalesce(old.name, p_name), p_doc ->> 'url',
           coalesce(p_doc ->> 'secret', old.secret), array(select jsonb_array_elements_text(p_doc -> 'events')),
           array(select jsonb_array_elements_text(coalesce(p_doc -> 'jobs', '[]'))),
           coalesce((p_doc ->> 'enabled')::boolean, true), coalesce((p_doc ->> 'maxAttempts')::integer, 8),
           a.caller, a.caller
      from current_actor() a
    on conflict (webhook_id) do update
       set url = excluded.url, secret = excluded.secret, events = excluded.events, jobs = excluded.jobs,
           enabled = excluded.enabled, max_attempts = excluded.max_attempts, row_version = nextval('row_version'),
           modified_by = excluded.modified_by, modified_at = clock_timestamp();
    perform write_audit('put_webhook', jsonb_build_object(
        'webhook_name', coalesce(old.name, p_name), 'url', p_doc ->> 'url', 'events', p_doc -> 'events'));
    return jsonb_build_object('created', old.name is null, 'item', get_item('webhooks', array[p_name]));
end $$;
comment on function jobs_internal.put_webhook(text, jsonb, jsonb) is
    'Creates or replaces a webhook; without a secret the old one is kept.';
