-- for: agent
create or replace function jobs_internal.list_items(
    p_kind text, p_path text[], p_after jsonb, p_top integer, p_filters jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    top constant integer := least(greatest(coalesce(p_top, 100), 1), 1000);
    only_names constant text[] := case when p_filters ? 'only'
                                       then array(select jsonb_array_elements_text(p_filters -> 'only')) end;
    most_bytes constant integer := 1048576;
    parent_id uuid;
    entry record;
    item jsonb;
    items jsonb[] := '{}';
    size bigint := 0;
    last jsonb;
begin
    if p_kind in ('executions', 'targets') or p_kind like 'jobs/executions%' then
        return list_executions(p_kind, p_path, p_after, p_top, p_filters);
    elsif p_kind = 'activityLog' then
        return list_audit(p_after, p_top, p_filters);
    elsif p_kind = 'webhooks/deliveries' then
        return list_deliveries(p_path[1], p_after, top, p_filters);
    elsif p_kind not in ('credentials', 'targetGroups', 'privateEndpoints', 'webhooks', 'jobs', 'jobs/versions',
                         'jobs/plans', 'jobs/steps', 'jobs/versions/steps') then
        perform raise_error('MU012', 'p_kind', format('there is no kind %s', p_kind));
    elsif cardinality(p_path) > 0 then
        parent_id := get_item('jobs', p_path) ->> 'uid';
        perform get_item('jobs/versions', p_path) where p_kind = 'jobs/versions/steps';
    end if;
    -- Numbered items are ordered by rank, plans by their age, other items by name.
    for entry in
        with found (rank, name) as (
            select 0, c.name from credential c where p_kind = 'credentials'
            union all
            select 0, g.name from target_group g where p_kind = 'targetGroups'
            union all
            select 0, e.name from private_endpoint e where p_kind = 'privateEndpoints'
            union all
            select 0, w.name from webhook w where p_kind = 'webhooks'
            union all
            select 0, j.name from job j where p_kind = 'jobs' and j.deleted_at is null and not j.system
            union all
            select -v.version, v.version::text from job_version v where p_kind = 'jobs/versions' and v.job_id = parent_id
            union all
            select (-1000 * extract(epoch from p.created_at))::bigint, p.plan_id::text
              from plan p
             where p_kind = 'jobs/plans' and p.job_id = parent_id and p.expires_at > clock_timestamp()
            union all
            select s.step_id, s.name
              from job_step s
             where p_kind in ('jobs/steps', 'jobs/versions/steps') and s.job_id = parent_id
               and s.version = coalesce(p_path[2]::integer, (select j.version from job j where j.job_id = parent_id))
        ), next as (
            select f.rank, f.name, row_number() over (order by f.rank, lower(f.name) collate "C") as place
              from found f
             where (p_after is null
                    or (f.rank, lower(f.name) collate "C") > ((p_after ->> 'rank')::bigint, lower(p_after ->> 'name')))
               and (only_names is null or lower(f.name) = any(only_names))
        )
        select n.rank, n.name, n.place from next n where n.place <= top + 1 order by n.place
    loop
        if entry.place > top or size > most_bytes then
            return jsonb_build_object('items', to_jsonb(items), 'next', last);
        end if;
        item := get_item(p_kind, p_path || entry.name);
        items := array_append(items, item);
        size := size + pg_column_size(item);
        last := jsonb_build_object('rank', entry.rank, 'name', entry.name);
    end loop;
    return jsonb_build_object('items', to_jsonb(items), 'next', null);
end $$;
comment on function jobs_internal.list_items(text, text[], jsonb, integer, jsonb) is
    'A page of definitions or executions below a path, and the cursor of the next one; a page of large definitions has '
    'fewer of them. The filter `only` holds the names, in lower case, that the caller may see.';
