-- for: owner
create or replace function jobs_internal.run_attempt_rules(p_job_id uuid) returns jsonb
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select case when not j.system and (coalesce(j.run_attempts, i.run_attempts) ->> 'enabled')::boolean
                then jsonb_build_object('maxSuccessiveWithoutProgress', 5, 'maxWithoutProgress', 10,
                                        'maxWithProgress', 20, 'backoffSeconds', '[10, 30, 90, 270]'::jsonb)
                     || (i.run_attempts - 'enabled') || (coalesce(j.run_attempts, '{}') - 'enabled') end
      from job j cross join instance i
     where j.job_id = p_job_id
$$;
comment on function jobs_internal.run_attempt_rules(uuid) is
    'The limits and pauses of the attempts that a run of the job has now: those of the job, then those of the account, '
    'then the defaults; null if its runs have no attempts.';
