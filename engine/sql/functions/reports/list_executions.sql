-- for: owner
create or replace function jobs_internal.list_executions(
    p_kind text, p_path text[], p_after jsonb, p_top integer, p_filters jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    top constant integer := least(greatest(coalesce(p_top, 100), 1), 1000);
    deleted constant boolean := coalesce((p_filters ->> 'includeDeleted')::boolean, false);
    run job_execution;
begin
    if p_kind = 'executions' then
        return list_runs(p_after, top, p_filters);
    elsif p_kind = 'jobs/executions' then
        return list_job_runs(p_path[1], p_after, top, p_filters);
    elsif p_kind = 'targets' then
        return list_target_history(p_after, top, p_filters);
    end if;
    run := find_run(p_path[1], p_path[2], deleted);
    if p_kind = 'jobs/executions/steps' then
        return list_run_steps(run, p_after, top, p_filters);
    elsif p_kind = 'jobs/executions/targets' then
        return list_run_targets(run, null, p_after, top, p_filters);
    elsif p_kind = 'jobs/executions/steps/targets/attempts' then
        return list_attempts(run, p_path, p_after, top);
    end if;
    return list_run_targets(run, (find_step(run, p_path[3])).step_id, p_after, top, p_filters);
end $$;
comment on function jobs_internal.list_executions(text, text[], jsonb, integer, jsonb) is
    'A page of runs, steps, targets or attempts, newest first, and the cursor of the next one.';
