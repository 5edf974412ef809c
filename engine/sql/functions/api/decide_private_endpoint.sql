-- for: agent
create or replace function jobs_internal.decide_private_endpoint(p_name text, p_status text, p_server_id text)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if (p_status in ('Approved', 'Rejected')) is not true then
        perform raise_error('MU012', 'status', 'status is Approved or Rejected');
    end if;
    update private_endpoint e
       set status = p_status, row_version = nextval('row_version'),
           modified_by = a.caller, modified_at = clock_timestamp()
      from current_actor() a
     where lower(e.name) = lower(p_name) and e.server_id = p_server_id and e.status <> p_status;
    if found then
        perform write_audit('decide_private_endpoint',
            jsonb_build_object('private_endpoint_name', p_name, 'status', p_status));
    end if;
    return get_item('privateEndpoints', array[p_name]);
end $$;
comment on function jobs_internal.decide_private_endpoint(text, text, text) is
    'Approves or rejects a private endpoint, for an administrator of the target server; private endpoints of other '
    'servers do not change.';
