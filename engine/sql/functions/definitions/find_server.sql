-- for: owner
create or replace function jobs_internal.find_server(p_name text, p_column text default 'server_name') returns text
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    found_id text;
    near text;
begin
    select s.server_id into found_id from server_names() s where s.name = lower(p_name) limit 1;
    if not found then
        select string_agg(n.name, ', ' order by n.distance, n.name) into near
          from (select s.name, edit_distance(lower(s.name), split_part(lower(p_name), '.', 1)) as distance
                  from server_directory s
                 where abs(length(s.name) - length(split_part(p_name, '.', 1))) <= 3
                 order by distance, s.name limit 3) n
         where n.distance <= 3;
        perform raise_error('MU015', p_column, format('server "%s" is not in the directory of this account', p_name),
            coalesce('Perhaps you meant ' || near || '.', 'No server of the account has a similar name.'));
    end if;
    return found_id;
end $$;
comment on function jobs_internal.find_server(text, text) is
    'Id of the server with this short name, host name or Azure name; raises with the nearest names otherwise.';
