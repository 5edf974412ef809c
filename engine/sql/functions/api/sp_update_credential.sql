-- for: admin
create or replace function jobs.sp_update_credential(
    credential_name text, identity text default null, secret text default null, servers text[] default null
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    old credential;
    bound jsonb;
begin
    select * into old from credential c where lower(c.name) = lower(credential_name) for no key update;
    if not found then
        perform raise_error('MU010', 'credential_name', format('credential "%s" was not found', credential_name));
    end if;
    identity := coalesce(identity, old.username);
    sp_update_credential.secret := coalesce(sp_update_credential.secret, old.secret);
    bound := case when sp_update_credential.servers is null then old.servers
                  else credential_servers(sp_update_credential.servers) end;
    if (identity, sp_update_credential.secret) = (old.username, old.secret) and bound is not distinct from old.servers then
        return;
    end if;
    perform check_secret(identity, sp_update_credential.secret);
    update credential
       set username = identity, secret = sp_update_credential.secret, servers = bound,
           row_version = nextval('row_version'), modified_by = a.caller, modified_at = clock_timestamp()
      from current_actor() a
     where credential_id = old.credential_id;
    perform write_audit('sp_update_credential', jsonb_build_object('credential_name', old.name));
end $$;
comment on function jobs.sp_update_credential(text, text, text, text[]) is
    'Changes the parameters that are passed: the user name, the secret, the servers that the credential is for (* '
    'alone: any).';
