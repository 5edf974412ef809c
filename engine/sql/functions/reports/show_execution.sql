-- for: owner
create or replace function jobs_internal.show_execution(p_kind text, p_path text[], p_deleted boolean) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run(p_path[1], p_path[2], p_deleted);
    step step_execution;
    one record;
    tried task;
begin
    if p_kind = 'jobs/executions' then
        return run_item(run);
    end if;
    step := find_step(run, p_path[3]);
    if p_kind = 'jobs/executions/steps' then
        return step_item(run, step);
    end if;
    select * into one from find_target(step, p_path[4]);
    if p_kind = 'jobs/executions/steps/targets' then
        return target_item(run, step.step_name, one.target, one.described);
    end if;
    select k.* into tried
      from task k
     where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
           = (step.run_day, step.job_execution_id, step.step_id, (one.target).ordinal)
       and k.attempt::text = p_path[5]
       and k.start_time is not null;
    if not found then
        raise exception 'target % of step "%" had no attempt %', p_path[4], step.step_name, p_path[5]
            using errcode = 'MU010';
    end if;
    return attempt_item(run, step.step_name, (one.described).target_id, tried, true);
end $$;
comment on function jobs_internal.show_execution(text, text[], boolean) is
    'A run, a step of it, a target of the step or an attempt on it, by its path; of deleted jobs only if requested.';
