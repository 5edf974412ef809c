-- for: engine
create or replace function jobs_internal.read_credentials(p_ids uuid[])
returns table (credential_id uuid, row_version bigint, name text, username text, secret text, servers jsonb)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select c.credential_id, c.row_version, c.name, c.username, c.secret, c.servers
      from credential c
     where c.credential_id = any(p_ids);
end $$;
comment on function jobs_internal.read_credentials(uuid[]) is
    'The credentials with these ids: sealed, or references that the engine opens, and the servers that each is for.';
