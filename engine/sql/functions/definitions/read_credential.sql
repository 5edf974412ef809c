-- for: engine
create or replace function jobs_internal.read_credential(p_name text)
returns table (credential_id uuid, row_version bigint, name text, username text, secret text, servers jsonb)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select r.* from read_credentials(array(select c.credential_id from credential c where lower(c.name) = lower(p_name))) r;
end $$;
comment on function jobs_internal.read_credential(text) is 'The credential with this name, as read_credentials returns it.';
