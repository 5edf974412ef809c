-- for: owner
create or replace function jobs_internal.server_names() returns table (name text, server_id text)
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    with short (name, server_id) as (
        select lower(n.name), s.server_id
          from server_directory s
          cross join lateral unnest(array[s.name, s.name || '.database.windows.net']) n (name)
    ), host (name, server_id) as (
        select lower(h.name), min(s.server_id)
          from server_directory s
          cross join lateral unnest(s.hosts) h (name)
         group by lower(h.name)
        having count(distinct s.server_id) = 1
    )
    select name, server_id from short
    union all
    select h.name, h.server_id from host h where not exists (select from short s where s.name = h.name)
$$;
comment on function jobs_internal.server_names() is
    'All names of all servers in the directory, in lower case: short name, <name>.database.windows.net, and host '
    'names that belong to one server only and are not the short name of another.';
