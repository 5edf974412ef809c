-- for: owner
create or replace function jobs_internal.choose_targets(p_run uuid, p_targets jsonb) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong record;
begin
    if jsonb_typeof(p_targets) <> 'array' or jsonb_array_length(p_targets) not between 1 and 10000 then
        perform raise_error('MU012', 'targets', 'targets is a list of 1 to 10000 servers, databases or schemas');
    end if;
    select t.place, r.meaning into wrong
      from jsonb_array_elements(p_targets) with ordinality t (doc, place)
     cross join lateral (
          select 'is an object with serverName, databaseName and schemaName' as meaning
           where jsonb_typeof(t.doc) <> 'object'
          union all
          select format('%s is not one of serverName, databaseName and schemaName', k.key)
            from jsonb_each(case jsonb_typeof(t.doc) when 'object' then t.doc else '{}' end) k
           where k.key not in ('serverName', 'databaseName', 'schemaName')
          union all
          select format('%s is a text', k.key)
            from jsonb_each(case jsonb_typeof(t.doc) when 'object' then t.doc else '{}' end) k
           where jsonb_typeof(k.value) <> 'string'
          union all
          select format('%s has 1 to %s bytes and no invisible characters', f.key, f.longest)
            from (values ('serverName', coalesce(t.doc ->> 'serverName', ''), 253),
                         ('databaseName', t.doc ->> 'databaseName', 63), ('schemaName', t.doc ->> 'schemaName', 63))
                 f (key, value, longest)
           where octet_length(f.value) not between 1 and f.longest or f.value ~ $r$[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]$r$
          union all
          select 'schemaName needs a databaseName' where t.doc ? 'schemaName' and t.doc ->> 'databaseName' is null) r
     order by t.place
     limit 1;
    if found then
        perform raise_error('MU012', 'targets', format('targets[%s]: %s', wrong.place - 1, wrong.meaning));
    end if;
    insert into chosen_target (job_execution_id, step_id, target_id, target_type, server_id, server_name, database_name,
                               schema_name, rule)
    select p_run, 1, i.id, case when t.doc ->> 'databaseName' is null then 'SqlServer'
                                when t.doc ->> 'schemaName' is null then 'SqlDatabase' else 'SqlSchema' end,
           s.server_id, s.name, t.doc ->> 'databaseName', t.doc ->> 'schemaName', i.id
      from (select d.doc, find_server(d.doc ->> 'serverName', 'targets') as server_id
              from jsonb_array_elements(p_targets) d (doc)) t
      join server_directory s on s.server_id = t.server_id
     cross join lateral (
          select encode(substring(sha256(convert_to(json_build_array(
                     lower(s.server_id), t.doc ->> 'databaseName', t.doc ->> 'schemaName')::text, 'UTF8')) for 16),
                     'hex')::uuid as id) i  -- as in store_snapshot
    on conflict do nothing;
end $$;
comment on function jobs_internal.choose_targets(uuid, jsonb) is
    'Stores the targets that the caller of a start named; a server without a database means all of its databases.';
