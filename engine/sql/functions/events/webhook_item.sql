-- for: owner
create or replace function jobs_internal.webhook_item(p_webhook jobs_internal.webhook) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return definition_item(
        array[p_webhook.name], p_webhook.webhook_id, p_webhook.row_version, p_webhook.created_by, p_webhook.created_at,
        p_webhook.modified_by, p_webhook.modified_at, (
            select jsonb_build_object(
                       'url', p_webhook.url, 'events', p_webhook.events, 'jobs', p_webhook.jobs,
                       'enabled', p_webhook.enabled, 'maxAttempts', p_webhook.max_attempts,
                       'pending', count(*) filter (where d.status = 'Pending'),
                       'delivered', count(*) filter (where d.status = 'Delivered'),
                       'failed', count(*) filter (where d.status = 'Failed'))
              from webhook_delivery d
             where d.webhook_id = p_webhook.webhook_id));
end $$;
comment on function jobs_internal.webhook_item(jobs_internal.webhook) is
    'A webhook as the node agent reads it, without its secret.';
