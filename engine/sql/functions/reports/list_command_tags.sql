-- for: owner
create or replace function jobs_internal.list_command_tags(
    p_run jobs_internal.job_execution, p_step text, p_after jsonb, p_top integer
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
    most_stored_bytes constant bigint := 16 * 1024 * 1024;  -- of the results that are read for the tags
    step constant step_execution := step_of_results(p_run, p_step);
    one record;
    item jsonb;
    items jsonb[] := '{}';
    bytes bigint := 0;
    stored_bytes bigint := 0;
    next jsonb;
begin
    -- In the order of the keys, so that a page reads only its own targets: this needs the settings above.
    for one in
        select t.ordinal, k.attempt, k.results, pg_column_size(k.results) as size, d.target_id, d.server_name,
               d.database_name, d.schema_name
          from target_execution t
         cross join lateral (
               select k.attempt, k.results
                 from task k
                where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                      = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                  -- A later attempt may have asked the verify query or written the output only.
                  and case when t.checkpoint ? 'attempt' then k.attempt = (t.checkpoint ->> 'attempt')::integer
                           else k.lifecycle = 'Succeeded' end
                order by k.attempt desc
                limit 1) k
          join snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
         where (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, step.job_execution_id, step.step_id)
           and t.ordinal >= coalesce((p_after ->> 'ordinal')::integer, 0)
           and t.lifecycle = 'Succeeded'
         order by t.ordinal
    loop
        if cardinality(items) >= p_top or bytes >= most_bytes or stored_bytes >= most_stored_bytes then
            next := jsonb_build_object('ordinal', one.ordinal);
            exit;
        end if;
        item := jsonb_strip_nulls(jsonb_build_object(
            'stepName', step.step_name, 'targetId', one.target_id, 'serverName', one.server_name,
            'databaseName', one.database_name, 'schemaName', one.schema_name, 'attempt', one.attempt,
            'commandTags', (select coalesce(jsonb_agg(jsonb_build_object(
                                       'statement', e.value -> 'statement', 'tag', e.value -> 'tag',
                                       'rows', substring(e.value ->> 'tag' from ' ([0-9]{1,18})$')::bigint)
                                   order by e.n), '[]')
                              from jsonb_array_elements(one.results) with ordinality e (value, n))));
        items := items || item;
        bytes := bytes + octet_length(item::text);
        stored_bytes := stored_bytes + one.size;
    end loop;
    return jsonb_build_object('items', to_jsonb(items), 'next', next);
end $$;
comment on function jobs_internal.list_command_tags(jobs_internal.job_execution, text, jsonb, integer) is
    'A page of the command tags of the statements that a step ran, by succeeded target in their order.';
