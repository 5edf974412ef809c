-- for: owner
create or replace function jobs_internal.get_execution_v1(p_kind text, p_path text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run constant job_execution := find_run_v1(p_path[1], p_path[2], false);
    step step_execution;
    item jsonb;
begin
    if p_kind = 'jobs/executions' then
        return run_item_v1(run);
    end if;
    step := find_step_v1(run, p_path[3]);
    if p_kind = 'jobs/executions/steps' then
        return step_item_v1(run, step);
    end if;
    select target_item_v1(run, step.step_name, t, d) into item
      from snapshot_target d
      join target_execution t on t.ordinal = d.ordinal
     where d.snapshot_id = step.snapshot_id
       and d.target_id = uuid_v1(p_path[4])
       and (t.run_day, t.job_execution_id, t.step_id) = (step.run_day, step.job_execution_id, step.step_id);
    if not found then
        raise exception 'step "%" of execution % has no target %', step.step_name, run.job_execution_id, p_path[4]
            using errcode = 'MU010';
    end if;
    return item;
end $$;
comment on function jobs_internal.get_execution_v1(text, text[]) is
    'A run, a step of it or a target of the step, by its path; deleted jobs have none.';
