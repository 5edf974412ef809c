-- for: owner
create or replace function jobs_internal.list_messages(
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
    most_bytes constant bigint := 8 * 1024 * 1024;
    most_targets constant integer := 20000;
    wanted constant integer := case when p_step is not null then (find_step(p_run, p_step)).step_id end;
    one record;
    item jsonb;
    items jsonb[] := '{}';
    bytes bigint := 0;
    next jsonb;
    -- Most targets have no notices: a page ends after a number of targets, however few notices they have.
    beyond record;
begin
    select t.step_id, t.ordinal into beyond
      from target_execution t
     where (t.run_day, t.job_execution_id) = (p_run.run_day, p_run.job_execution_id)
       and (wanted is null or t.step_id = wanted)
       and (p_after is null
            or (t.step_id, t.ordinal) >= ((p_after ->> 'stepId')::integer, (p_after ->> 'ordinal')::integer))
     order by t.step_id, t.ordinal
    offset most_targets limit 1;
    if found then
        next := jsonb_build_object('stepId', beyond.step_id, 'ordinal', beyond.ordinal);
    end if;
    -- In the order of the keys, so that a page reads few rows of other targets: this needs the settings above.
    for one in
        select t.step_id, t.ordinal, s.step_name, k.attempt, k.notices, d.target_id, d.server_name, d.database_name,
               d.schema_name
          from target_execution t
         cross join lateral (
               select k.attempt, k.notices
                 from task k
                where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                      = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                  and k.end_time is not null
                order by k.attempt) k
          join step_execution s
            on (s.run_day, s.job_execution_id, s.step_id) = (t.run_day, t.job_execution_id, t.step_id)
          join snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
         where (t.run_day, t.job_execution_id) = (p_run.run_day, p_run.job_execution_id)
           and (wanted is null or t.step_id = wanted)
           and (p_after is null
                or (t.step_id, t.ordinal) >= ((p_after ->> 'stepId')::integer, (p_after ->> 'ordinal')::integer))
           and (p_after is null
                or (t.step_id, t.ordinal, k.attempt)
                   >= ((p_after ->> 'stepId')::integer, (p_after ->> 'ordinal')::integer,
                       coalesce((p_after ->> 'attempt')::integer, 0)))
           and (next is null
                or (t.step_id, t.ordinal) < ((next ->> 'stepId')::integer, (next ->> 'ordinal')::integer))
           and jsonb_array_length(k.notices) > 0
         order by t.step_id, t.ordinal, k.attempt
    loop
        if cardinality(items) >= p_top or bytes >= most_bytes then
            next := jsonb_build_object('stepId', one.step_id, 'ordinal', one.ordinal, 'attempt', one.attempt);
            exit;
        end if;
        item := jsonb_strip_nulls(jsonb_build_object(
            'stepName', one.step_name, 'targetId', one.target_id, 'serverName', one.server_name,
            'databaseName', one.database_name, 'schemaName', one.schema_name, 'attempt', one.attempt,
            'notices', one.notices));
        items := items || item;
        bytes := bytes + octet_length(item::text);
    end loop;
    return jsonb_build_object('items', to_jsonb(items), 'next', next);
end $$;
comment on function jobs_internal.list_messages(jobs_internal.job_execution, text, jsonb, integer) is
    'A page of the notices of a step''s targets, in their order: those of every finished attempt.';
