-- for: owner
create or replace function jobs_internal.target_wait_reason(
    p_step jobs_internal.step_execution, p_target jobs_internal.target_execution
) returns text
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select case when p_target.lifecycle not in ('Created', 'WaitingForRetry') then p_target.wait_reason
                when p_step.halted_at is not null then 'Halted'
                when p_target.wave > p_step.wave then 'Wave'
                else p_target.wait_reason end
$$;
comment on function jobs_internal.target_wait_reason(jobs_internal.step_execution, jobs_internal.target_execution) is
    'Why a target of the step waits, as far as rows tell: the rollout of the step counts for all of its targets.';
