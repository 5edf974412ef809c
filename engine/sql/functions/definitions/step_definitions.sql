-- for: owner
create or replace function jobs_internal.step_definitions(
    p_job_id uuid, p_version integer, p_overrides jsonb default '{}'
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select jsonb_agg(jsonb_build_object(
                   'stepId', s.step_id, 'name', s.name, 'targetGroupId', s.target_group_id,
                   'targetGroupName', s.target_group_name,
                   'maxParallelism', coalesce((p_overrides ->> 'maxParallelism')::integer, s.max_parallelism),
                   'timeoutSeconds', coalesce((p_overrides ->> 'timeoutSeconds')::integer, s.timeout_seconds),
                   -- The rollout of the first step of a chain holds for the others.
                   'options', s.options || case when p_overrides ? 'rollout'
                                                 and s.options ->> 'advance' is distinct from 'perTarget'
                                                then jsonb_build_object('rollout', p_overrides -> 'rollout')
                                                else '{}' end,
                   'credentialId', s.credential_id) order by s.step_id)
          from job_step s
         where (s.job_id, s.version) = (p_job_id, p_version));
end $$;
comment on function jobs_internal.step_definitions(uuid, integer, jsonb) is
    'The steps of a version as the core reads them, with the values that a run has instead; null when there are none.';
