-- for: owner
create or replace function jobs_internal.list_results(
    p_run jobs_internal.job_execution, p_step text, p_set integer, p_after jsonb, p_top integer
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
    most_bytes constant bigint := 2 * 1024 * 1024;
    most_cells constant integer := 100000;  -- of the joined table: each row has the columns of all targets of the page
    step step_execution;
    one record;
    kind text;
    kinds text[] := '{}';  -- of columns
    width integer := 3;
    fit integer;  -- rows of that width
    part jsonb;
    parts jsonb[] := '{}';
    row_total integer := 0;
    bytes bigint := 0;
    skip integer := coalesce((p_after ->> 'row')::integer, 0);
    -- Only of targets that had ended then: all pages of a stream are of one moment.
    until constant timestamptz := p_after ->> 'until';
    kept constant jsonb := jsonb_strip_nulls(jsonb_build_object('until', p_after -> 'until'));
    next jsonb;
begin
    step := step_of_results(p_run, p_step);
    -- In the order of the keys, so that a page reads only its own targets: this needs the settings above.
    for one in
        select t.ordinal, d.server_name, d.database_name, d.schema_name, r.result,
               jsonb_array_length(r.result -> 'rows') as rows
          from target_execution t
         cross join lateral (
               select k.results
                 from task k
                where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                      = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                  -- A later attempt may have asked the verify query or written the output only.
                  and case when t.checkpoint ? 'attempt' then k.attempt = (t.checkpoint ->> 'attempt')::integer
                           else k.lifecycle = 'Succeeded' end
                order by k.attempt desc
                limit 1) k
         cross join lateral (
               select e.value as result
                 from jsonb_array_elements(k.results) with ordinality e (value, n)
                where jsonb_typeof(e.value -> 'columns') = 'array'
                order by e.n
               offset p_set - 1 limit 1) r
          join snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
         where (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, step.job_execution_id, step.step_id)
           and t.ordinal >= coalesce((p_after ->> 'ordinal')::integer, 0)
           and t.lifecycle = 'Succeeded'
           and (until is null or t.end_time <= until)
         order by t.ordinal
    loop
        if row_total >= p_top or bytes >= most_bytes then
            next := kept || jsonb_build_object('ordinal', one.ordinal, 'row', 0);
            exit;
        end if;
        kind := md5(jsonb_path_query_array(one.result, '$.columns[*].name')::text);
        if kind <> all(kinds) then
            kinds := kinds || kind;
            width := width + jsonb_array_length(one.result -> 'columns');
        end if;
        fit := greatest(1, most_cells / width);
        if cardinality(parts) > 0 and row_total >= fit then
            next := kept || jsonb_build_object('ordinal', one.ordinal, 'row', 0);
            exit;
        end if;
        select jsonb_build_object(
                   'serverName', one.server_name, 'databaseName', one.database_name, 'schemaName', one.schema_name,
                   'columns', jsonb_path_query_array(one.result, '$.columns[*].name'),
                   'truncated', coalesce((one.result ->> 'truncated')::boolean, false), 'firstRow', skip,
                   'rows', coalesce(jsonb_agg(e.value order by e.n), '[]'))
          into part
          from jsonb_array_elements(one.result -> 'rows') with ordinality e (value, n)
         where e.n > skip and e.n <= skip::bigint + least(p_top, fit) - row_total;
        parts := parts || part;
        row_total := row_total + jsonb_array_length(part -> 'rows');
        bytes := bytes + octet_length(part::text);
        if skip + jsonb_array_length(part -> 'rows') < one.rows then
            next := kept || jsonb_build_object('ordinal', one.ordinal, 'row', skip + jsonb_array_length(part -> 'rows'));
            exit;
        end if;
        skip := 0;
    end loop;
    return jsonb_build_object(
        'stepName', step.step_name, 'parts', to_jsonb(parts), 'next', next,
        'targets', (select count(*) from target_execution t
                     where (t.run_day, t.job_execution_id, t.step_id)
                           = (step.run_day, step.job_execution_id, step.step_id)
                       and t.lifecycle = 'Succeeded'));
end $$;
comment on function jobs_internal.list_results(jobs_internal.job_execution, text, integer, jsonb, integer) is
    'A page of the rows that a step returned, by succeeded target in their order, and the cursor of the next one.';
