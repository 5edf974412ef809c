-- for: owner
create or replace function jobs_internal.find_plan(p_job jobs_internal.job, p_plan uuid) returns jobs_internal.plan
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wanted plan;
    problem text;
begin
    select * into wanted from plan p where (p.plan_id, p.job_id) = (p_plan, p_job.job_id) for no key update;
    problem := case
        when wanted.plan_id is null then format('job "%s" has no plan %s: plans expire after three days', p_job.name, p_plan)
        when wanted.expires_at <= clock_timestamp()
        then format('plan %s has expired at %s: make a new one', p_plan, iso_time(wanted.expires_at))
        when exists (select from job_execution x where x.plan_of = p_plan)
        then format('plan %s was started before, as execution %s: make a new one, or run that execution again', p_plan,
                    (select x.job_execution_id from job_execution x where x.plan_of = p_plan))
        when wanted.document ? 'jobExecutionId'
        then format('plan %s was started before, as execution %s: make a new one', p_plan,
                    wanted.document ->> 'jobExecutionId')
        when exists (select from job_step s
                      where (s.job_id, s.version) = (wanted.job_id, wanted.job_version)
                        and not exists (select from plan_snapshot n where (n.plan_id, n.step_id) = (p_plan, s.step_id)))
        then format('plan %s has a step whose targets could not be resolved: see its errors, and make a new one', p_plan)
        end;
    if problem is not null then
        perform raise_error('MU013', 'plan_id', problem);
    end if;
    return wanted;
end $$;
comment on function jobs_internal.find_plan(jobs_internal.job, uuid) is 'A plan of the job that may be started, locked; raises otherwise.';
