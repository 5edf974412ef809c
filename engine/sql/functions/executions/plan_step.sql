-- for: engine
create or replace function jobs_internal.plan_step(
    p_epoch bigint, p_run uuid, p_step_id integer, p_snapshot_id uuid, p_target_group_id uuid, p_group_hash bytea,
    p_directory_revision bigint, p_left_out jsonb, p_target_types text[], p_server_ids text[], p_server_names text[],
    p_pool_names text[], p_database_names text[], p_schema_names text[], p_labels jsonb[], p_credential_ids uuid[],
    p_rules uuid[], p_wave_starts integer[], out begun text, out skipped integer[]
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
    reached boolean;
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run;
    reached := exists (select from step_execution e
                        where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id));
    begun := 'Begun';
    -- A cancellation of a run that has entered the step does not wait until a large fleet is planned.
    if not reached then
        select * into strict run from job_execution x where x.job_execution_id = p_run for no key update;
        begun := may_begin(run);
    end if;
    if begun <> 'Begun' then
        return;
    end if;
    perform store_snapshot(
        p_epoch, p_snapshot_id, p_target_group_id, p_group_hash, p_directory_revision, p_left_out, p_target_types,
        p_server_ids, p_server_names, p_pool_names, p_database_names, p_schema_names, p_labels, p_credential_ids,
        p_rules);
    if reached then
        skipped := plan_targets(run, p_step_id, p_snapshot_id, p_wave_starts);
    else
        perform create_step_execution(run, p_step_id, p_snapshot_id, cardinality(p_wave_starts) + 1);
        skipped := create_target_executions(run, p_step_id, p_snapshot_id, p_wave_starts);
    end if;
end $$;
comment on function jobs_internal.plan_step(
    bigint, uuid, integer, uuid, uuid, bytea, bigint, jsonb, text[], text[], text[], text[], text[], text[], jsonb[],
    uuid[], uuid[], integer[]) is
    'Begins the run if it may begin, and enters this step with these targets; returns what may_begin returns, and '
    'the ordinals that are Skipped, null when the step was planned before. Repeating the call is harmless.';
