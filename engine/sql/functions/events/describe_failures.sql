-- for: owner
create or replace function jobs_internal.describe_failures(p_run uuid, p_payload jsonb, p_time timestamptz)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    day constant date := (select x.run_day from job_execution x where x.job_execution_id = p_run);
    failures jsonb;
begin
    select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'targetId', d.target_id, 'serverName', d.server_name, 'databaseName', d.database_name,
               'schemaName', d.schema_name, 'lifecycle', k.lifecycle, 'endReason', k.end_reason, 'sqlstate', k.sqlstate,
               'attempts', k.attempt, 'message', left(coalesce(k.message, t.last_message), 500))) order by t.ordinal)
      into failures
      from jsonb_array_elements_text(p_payload -> 'failed') g (ordinal)
      join target_execution t
        on (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
           = (day, p_run, (p_payload ->> 'stepId')::integer, g.ordinal::integer)
      join snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
     -- The target may have been retried since.
     cross join lateral (
           select k.* from task k
            where (k.run_day, k.job_execution_id, k.step_id, k.ordinal) = (day, p_run, t.step_id, t.ordinal)
              and k.end_time <= p_time
            order by k.attempt desc limit 1) k;
    return jsonb_strip_nulls(jsonb_build_object('failures', failures));
end $$;
comment on function jobs_internal.describe_failures(uuid, jsonb, timestamptz) is
    'The targets that an event of kind targetsEnded lists by their ordinals, as they had ended at that time and as clients '
    'read them; nothing of a run that was deleted meanwhile.';
