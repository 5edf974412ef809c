-- for: owner
create or replace function jobs_internal.server_names_v1() returns table (name text, server_id text)
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select lower(n.name), s.server_id
      from server_directory s
      cross join lateral unnest(s.hosts || array[s.name, s.name || '.database.windows.net']) n (name)
$$;
comment on function jobs_internal.server_names_v1() is
    'All names of all servers in the directory, in lower case: short name, host names and <name>.database.windows.net.';
