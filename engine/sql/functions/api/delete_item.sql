-- for: agent
create or replace function jobs_internal.delete_item(p_kind text, p_path text[], p_condition jsonb, p_options jsonb)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    item jsonb;
begin
    -- The row can't change between the check of the condition and the deletion.
    case p_kind
    when 'credentials' then
        perform from credential c where lower(c.name) = lower(p_path[1]) for update;
    when 'targetGroups' then
        perform from target_group g where lower(g.name) = lower(p_path[1]) for update;
    when 'jobs' then
        perform from job j where lower(j.name) = lower(p_path[1]) and j.deleted_at is null for update;
    when 'jobs/steps' then
        perform lock_job(p_path[1]);
    when 'privateEndpoints' then
        perform from private_endpoint e where lower(e.name) = lower(p_path[1]) for update;
    when 'webhooks' then
        perform from webhook w where lower(w.name) = lower(p_path[1]) for update;
    end case;
    begin
        item := get_item(p_kind, p_path);
    exception when sqlstate 'MU010' then
        return '{"deleted": false}';
    end;
    perform check_condition(p_condition, (item ->> 'rowVersion')::bigint);
    case p_kind
    when 'credentials' then
        perform sp_delete_credential(p_path[1]);
    when 'targetGroups' then
        perform sp_delete_target_group(p_path[1]);
    when 'jobs/steps' then
        perform sp_delete_jobstep(p_path[1], step_name => p_path[2]);
    when 'jobs' then
        perform sp_delete_job(p_path[1], coalesce((p_options ->> 'force')::boolean, false));
        if (p_options ->> 'purgeHistory')::boolean then
            perform sp_purge_jobhistory(job_id => (item ->> 'uid')::uuid);
        end if;
    when 'privateEndpoints' then
        delete from private_endpoint e where lower(e.name) = lower(p_path[1]);
        perform write_audit('delete_private_endpoint', jsonb_build_object('private_endpoint_name', item ->> 'name'));
    when 'webhooks' then
        delete from webhook w where lower(w.name) = lower(p_path[1]);
        perform write_audit('delete_webhook', jsonb_build_object('webhook_name', item ->> 'name'));
    end case;
    return '{"deleted": true}';
end $$;
comment on function jobs_internal.delete_item(text, text[], jsonb, jsonb) is
    'Deletes a definition; returns false when there was none. force and purgeHistory are for jobs.';
