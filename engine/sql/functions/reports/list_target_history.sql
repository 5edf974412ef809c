-- for: owner
create or replace function jobs_internal.list_target_history(p_after jsonb, p_top integer, p_filters jsonb) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    deleted constant boolean := coalesce((p_filters ->> 'includeDeleted')::boolean, false);
    schema constant text := p_filters ->> 'schema';
    last_time constant timestamptz := coalesce((p_after ->> 'createTime')::timestamptz, 'infinity');
    last_run constant uuid := coalesce((p_after ->> 'id')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    last_step constant integer := coalesce((p_after ->> 'stepId')::integer, 2147483647);
    last_ordinal constant integer := coalesce((p_after ->> 'ordinal')::integer, 2147483647);
    last_day constant date := case when p_after is null then 'infinity' else (last_time at time zone 'UTC')::date end;
    server constant text := lower(p_filters ->> 'server');
    -- Also names that are in the directory no longer.
    names constant text[] := array(select s.name
                                     from server_names() n join server_directory s on s.server_id = n.server_id
                                    where n.name = server)
                             || split_part(server, '.database.windows.net', 1);
    snapshots uuid[];
    places integer[];
    items jsonb[] := '{}';
    last jsonb;
    day date;
    one record;
begin
    select array_agg(d.snapshot_id), array_agg(d.ordinal)
      into snapshots, places
      from snapshot_target d
     where d.server_name = any(names)
       and d.database_name = p_filters ->> 'database'
       and (schema is null or d.schema_name = schema);
    if snapshots is null then
        return jsonb_build_object('items', jsonb_build_array(), 'next', null);
    end if;
    -- Day by day: only the partitions that fill the page are read.
    for day in
        select to_date(right(c.relname, 8), 'YYYYMMDD') as day
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'jobs_internal.step_execution'::regclass
         order by 1 desc
    loop
        continue when day > last_day;
        for one in
            select x as run, s.step_name, t as target, d as described, x.create_time, x.job_execution_id, t.step_id, t.ordinal
              from unnest(snapshots, places) place (snapshot_id, ordinal)
              join step_execution s on s.run_day = day and s.snapshot_id = place.snapshot_id
              join job_execution x on x.job_execution_id = s.job_execution_id
              join job j on j.job_id = x.job_id
              join target_execution t
                on (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                   = (day, s.job_execution_id, s.step_id, place.ordinal)
              join snapshot_target d on (d.snapshot_id, d.ordinal) = (place.snapshot_id, place.ordinal)
             where (x.create_time, x.job_execution_id, t.step_id, t.ordinal)
                   < (last_time, last_run, last_step, last_ordinal)
               and (j.deleted_at is null or deleted)
               and x.origin <> 'system'
             order by x.create_time desc, x.job_execution_id desc, t.step_id desc, t.ordinal desc
             limit p_top + 1 - cardinality(items)
        loop
            if cardinality(items) = p_top then
                return jsonb_build_object('items', to_jsonb(items), 'next', last);
            end if;
            items := items || target_item(one.run, one.step_name, one.target, one.described);
            last := jsonb_build_object('createTime', one.create_time, 'id', one.job_execution_id, 'stepId', one.step_id,
                                       'ordinal', one.ordinal);
        end loop;
    end loop;
    return jsonb_build_object('items', to_jsonb(items), 'next', null);
end $$;
comment on function jobs_internal.list_target_history(jsonb, integer, jsonb) is
    'A page of all that ran on a database, or on one schema of it, newest run first; also for a server that is no longer '
    'in the directory, by its short name.';
