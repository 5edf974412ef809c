-- for: owner
create or replace function jobs_internal.execution_item(
    p_run jobs_internal.job_execution, p_below text[], p_uid uuid, p_lifecycle text,
    p_create_time timestamptz, p_start_time timestamptz, p_end_time timestamptz, p_properties jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    path constant text[] := array[(select j.name from job j where j.job_id = p_run.job_id),
                                  p_run.job_execution_id::text] || p_below;
begin
    return jsonb_build_object(
        'name', path[cardinality(path)], 'uid', p_uid, 'rowVersion', null, 'path', to_jsonb(path),
        'createdBy', p_run.actor, 'createdAt', iso_time(p_create_time),
        'modifiedBy', p_run.actor, 'modifiedAt', iso_time(coalesce(p_end_time, p_start_time, p_create_time)),
        'properties', p_properties || jsonb_build_object(
            'jobVersion', p_run.job_version, 'jobExecutionId', p_run.job_execution_id, 'lifecycle', p_lifecycle,
            'provisioningState', case when p_lifecycle in ('Created', 'Failed', 'Canceled') then p_lifecycle
                                      when p_lifecycle = 'TimedOut' then 'Failed'
                                      when p_end_time is not null then 'Succeeded'
                                      else 'InProgress' end,
            'createTime', iso_time(p_create_time), 'startTime', iso_time(p_start_time), 'endTime', iso_time(p_end_time)));
end $$;
comment on function jobs_internal.execution_item(
    jobs_internal.job_execution, text[], uuid, text, timestamptz, timestamptz, timestamptz, jsonb) is
    'The fields that runs, steps and targets have in common, as REST shows them.';
