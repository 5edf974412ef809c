-- for: owner
create or replace function jobs_internal.rollout_updates() returns jsonb
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
               'job_execution_id', e.job_execution_id, 'step_id', e.step_id, 'approved_wave', e.approved_wave,
               'resumed_at', e.resumed_at, 'aborted', e.aborted_at is not null)), '[]')
      from step_execution e
     where e.end_time is null and coalesce(e.aborted_at, e.resumed_at) is not null
$$;
comment on function jobs_internal.rollout_updates() is 'The unfinished steps that an operator has resumed or aborted.';
