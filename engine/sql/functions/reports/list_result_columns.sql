-- for: owner
create or replace function jobs_internal.list_result_columns(
    p_run jobs_internal.job_execution, p_step text, p_set integer, p_after jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
    most_bytes constant bigint := 16 * 1024 * 1024;  -- as stored
    most_targets constant integer := 5000;
    step constant step_execution := step_of_results(p_run, p_step);
    -- While the step runs, results may be recorded with an earlier time and not be visible yet.
    until constant timestamptz := coalesce(
        (p_after ->> 'until')::timestamptz,
        clock_timestamp() - case when step.end_time is null then interval '2 seconds' else interval '0' end);
    one record;
    names jsonb;
    columns jsonb[] := '{}';
    seen integer := 0;
    with_set integer := 0;
    truncated integer := 0;
    bytes bigint := 0;
    next jsonb;
begin
    -- In the order of the keys, so that a page reads only its own targets: this needs the settings above.
    for one in
        select t.ordinal, r.result, k.size
          from target_execution t
         cross join lateral (
               select k.results, pg_column_size(k.results) as size
                 from task k
                where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                      = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                  -- A later attempt may have asked the verify query or written the output only.
                  and case when t.checkpoint ? 'attempt' then k.attempt = (t.checkpoint ->> 'attempt')::integer
                           else k.lifecycle = 'Succeeded' end
                order by k.attempt desc
                limit 1) k
          left join lateral (
               select e.value as result
                 from jsonb_array_elements(k.results) with ordinality e (value, n)
                where jsonb_typeof(e.value -> 'columns') = 'array'
                order by e.n
               offset p_set - 1 limit 1) r on true
         where (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, step.job_execution_id, step.step_id)
           and t.ordinal >= coalesce((p_after ->> 'ordinal')::integer, 0)
           and t.lifecycle = 'Succeeded'
           and t.end_time <= until
         order by t.ordinal
    loop
        if seen >= most_targets or bytes >= most_bytes then
            next := jsonb_build_object('ordinal', one.ordinal, 'until', until);
            exit;
        end if;
        seen := seen + 1;
        bytes := bytes + one.size;
        continue when one.result is null;
        with_set := with_set + 1;
        truncated := truncated + coalesce((one.result ->> 'truncated')::boolean, false)::integer;
        names := jsonb_path_query_array(one.result, '$.columns[*].name');
        if names <> all(columns) then
            columns := columns || names;
        end if;
    end loop;
    return jsonb_build_object('stepName', step.step_name, 'columns', to_jsonb(columns), 'targets', with_set,
                              'truncated', truncated, 'until', until, 'next', next);
end $$;
comment on function jobs_internal.list_result_columns(jobs_internal.job_execution, text, integer, jsonb) is
    'The different lists of columns that a result set of a step has, how many targets returned it, and of how many '
    'not all rows were kept; page by page, for targets that had ended at one moment.';
