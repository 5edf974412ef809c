-- for: owner
create or replace function jobs_internal.upsert_server_contacts(p_contacts jsonb) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    insert into server_contact (server_id, server_version, max_connections, budget, seen_at)
    select distinct on (g.server_id) g.server_id, g.server_version, g.max_connections, g.budget, clock_timestamp()
      from jsonb_to_recordset(p_contacts)
           g (server_id text, server_version integer, max_connections integer, budget integer)
     order by g.server_id
    on conflict (server_id) do update
       set (server_version, max_connections, budget, seen_at)
           = (excluded.server_version, excluded.max_connections, excluded.budget, excluded.seen_at);
end $$;
comment on function jobs_internal.upsert_server_contacts(jsonb) is
    'Stores the properties of servers that hosts have read.';
