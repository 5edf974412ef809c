-- for: admin
create or replace function jobs.sp_delete_credential(credential_name text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    gone credential;
    users text;
begin
    select * into gone from credential c where lower(c.name) = lower(credential_name) for update;
    if not found then
        perform raise_error('MU010', 'credential_name', format('credential "%s" was not found', credential_name));
    end if;
    users := used_by(gone.credential_id);
    if users is not null then
        perform raise_error('MU013', 'credential_name', format('credential "%s" is used by %s', gone.name, users));
    end if;
    delete from credential c where c.credential_id = gone.credential_id;
    perform write_audit('sp_delete_credential', jsonb_build_object('credential_name', gone.name));
end $$;
comment on function jobs.sp_delete_credential(text) is
    'Deletes a credential that no current step and no target group names.';
