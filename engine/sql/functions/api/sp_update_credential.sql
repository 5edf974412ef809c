-- for: admin
create or replace function jobs.sp_update_credential(
    credential_name text, identity text default null, secret text default null
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    old credential;
begin
    select * into old from credential c where lower(c.name) = lower(credential_name) for no key update;
    if not found then
        perform raise_error('MU010', 'credential_name', format('credential "%s" was not found', credential_name));
    end if;
    identity := coalesce(identity, old.username);
    sp_update_credential.secret := coalesce(sp_update_credential.secret, old.secret);
    if (identity, sp_update_credential.secret) = (old.username, old.secret) then
        return;
    end if;
    perform check_secret(identity, sp_update_credential.secret);
    update credential
       set username = identity, secret = sp_update_credential.secret, row_version = nextval('row_version'),
           modified_by = a.caller, modified_at = clock_timestamp()
      from current_actor() a
     where credential_id = old.credential_id;
    perform write_audit('sp_update_credential', jsonb_build_object('credential_name', old.name));
end $$;
comment on function jobs.sp_update_credential(text, text, text) is
    'Changes what is given: the user name, the secret or both.';
