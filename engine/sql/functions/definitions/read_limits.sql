-- for: engine
create or replace function jobs_internal.read_limits(p_epoch bigint)
returns table (server_id text, max_connections integer, budget integer, slots_per_database integer, disabled boolean,
               pools jsonb)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select d.server_id, d.max_connections, c.budget, d.slots_per_database,
           d.disabled or exists (select from private_endpoint e
                                  where lower(e.server_id) = lower(d.server_id) and e.status = 'Rejected'), d.pools
      from server_directory d
      left join server_contact c on c.server_id = d.server_id;
end $$;
comment on function jobs_internal.read_limits(bigint) is
    'The limits of each server: as configured, or else as a host observed them. A server whose private endpoint was '
    'rejected counts as disabled.';
