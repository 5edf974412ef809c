-- for: engine
create or replace function jobs_internal.secrets_v1(p_ids uuid[])
returns table (credential_id uuid, row_version bigint, name text, username text, secret text)
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select c.credential_id, c.row_version, c.name, c.username, c.secret
      from credential c
     where c.credential_id = any(p_ids)
       and c.servers is null;
end $$;
comment on function jobs_internal.secrets_v1(uuid[]) is
    'The credentials with these ids for engines that can''t hold a credential to the servers that it lists.';
