-- for: admin
create or replace function jobs.sp_add_credential(
    credential_name text, identity text, secret text, servers text[] default null, out credential_id uuid
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
begin
    perform check_name(credential_name, 'credential_name');
    perform check_secret(identity, sp_add_credential.secret);
    insert into credential as c (name, username, secret, servers, created_by, modified_by)
    select credential_name, identity, sp_add_credential.secret, credential_servers(sp_add_credential.servers),
           a.caller, a.caller
      from current_actor() a
    on conflict do nothing
    returning c.credential_id into sp_add_credential.credential_id;
    if not found then
        perform raise_error('MU011', 'credential_name', format('there is already a credential "%s"', credential_name));
    end if;
    perform write_audit('sp_add_credential', jsonb_build_object('credential_name', credential_name));
end $$;
comment on function jobs.sp_add_credential(text, text, text, text[]) is
    'Creates a login for targets, at any server or at the named ones. The secret is sealed by `muster credential '
    'seal`, or a reference env:, file: or vault:.';
