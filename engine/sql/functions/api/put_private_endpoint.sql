-- for: agent
create or replace function jobs_internal.put_private_endpoint(p_name text, p_doc jsonb, p_condition jsonb)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    old private_endpoint;
begin
    perform lock_name('private endpoint', p_name);
    select * into old from private_endpoint e where lower(e.name) = lower(p_name) for no key update;
    perform check_condition(p_condition, old.row_version);
    if old.name is null then
        perform check_name(p_name, 'private_endpoint_name');
        if coalesce(p_doc ->> 'serverId', '') = '' then
            perform raise_error('MU012', 'server_id', 'the id of the target server is missing');
        end if;
        insert into private_endpoint (private_endpoint_id, name, server_id, created_by, modified_by)
        select 'EJ_' || gen_random_uuid() || '_' || p_name, p_name, p_doc ->> 'serverId', a.caller, a.caller
          from current_actor() a;
        perform write_audit('put_private_endpoint', jsonb_build_object('private_endpoint_name', p_name));
    elsif lower(old.server_id) is distinct from lower(p_doc ->> 'serverId') then
        perform raise_error('MU012', 'server_id', 'the target server of a private endpoint can''t be changed',
            'Delete the private endpoint and create another one.', 'PropertyChangeUnsupported');
    end if;
    return jsonb_build_object('created', old.name is null, 'item', get_item('privateEndpoints', array[p_name]));
end $$;
comment on function jobs_internal.put_private_endpoint(text, jsonb, jsonb) is
    'Creates a request for a private connection to a server; Pending until an administrator of the server decides.';
