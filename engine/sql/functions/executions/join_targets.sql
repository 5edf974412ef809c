-- for: engine
create or replace function jobs_internal.join_targets(
    p_epoch bigint, p_run uuid, p_step_id integer, p_unlisted integer, p_target_types text[], p_server_ids text[],
    p_server_names text[], p_pool_names text[], p_database_names text[], p_schema_names text[], p_labels jsonb[],
    p_credential_ids uuid[], p_rules uuid[], p_wave_starts integer[]
) returns table (ordinal integer, server_id text, pool_name text, database_name text, unlisted boolean, skipped boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    run job_execution;
    step step_execution;
    replaced target_execution;
    described snapshot_target;
    last_ordinal integer;
    skipped_ordinals integer[];
begin
    perform check_epoch(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_run;
    select * into strict step from step_execution e
     where (e.run_day, e.job_execution_id, e.step_id) = (run.run_day, p_run, p_step_id) for no key update;
    -- The core reserves tasks on the same connection, so no task of it is reserved meanwhile.
    select * into replaced from target_execution x
     where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (run.run_day, p_run, p_step_id, p_unlisted)
       and x.end_time is null
       and not exists (select from task t
                        where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                              = (run.run_day, p_run, p_step_id, p_unlisted)
                          and t.lifecycle in ('Created', 'InProgress'))
       for update;
    if not found or step.end_time is not null
       or coalesce(run.cancel_requested_at, step.cancel_requested_at, step.aborted_at) is not null then
        return;
    end if;
    delete from task t
     where (t.run_day, t.job_execution_id, t.step_id, t.ordinal) = (run.run_day, p_run, p_step_id, p_unlisted);
    delete from target_execution x
     where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (run.run_day, p_run, p_step_id, p_unlisted);
    select max(d.ordinal) into last_ordinal from snapshot_target d where d.snapshot_id = step.snapshot_id;
    delete from snapshot_target d
     where (d.snapshot_id, d.ordinal) = (step.snapshot_id, p_unlisted)
    returning * into described;
    -- A target that another member of the group has named is in the step already.
    insert into snapshot_target (snapshot_id, ordinal, target_id, target_type, server_id, server_name, pool_name,
                                 database_name, schema_name, labels, credential_id, rule)
    select step.snapshot_id, last_ordinal + row_number() over (order by t.place), i.target_id, t.target_type, t.server_id,
           t.server_name, t.pool_name, t.database_name, t.schema_name, coalesce(t.labels, '{}'), t.credential_id, t.rule
      from unnest(p_target_types, p_server_ids, p_server_names, p_pool_names, p_database_names, p_schema_names,
                  p_labels, p_credential_ids, p_rules) with ordinality
           t (target_type, server_id, server_name, pool_name, database_name, schema_name, labels, credential_id, rule,
              place)
     cross join lateral (
           select encode(substring(sha256(convert_to(
                      json_build_array(lower(t.server_id), t.database_name, t.schema_name)::text, 'UTF8')) for 16),
                      'hex')::uuid) i (target_id)
     where not exists (select from snapshot_target d
                        where (d.snapshot_id, d.target_id) = (step.snapshot_id, i.target_id));
    skipped_ordinals := create_target_executions(run, p_step_id, step.snapshot_id, p_wave_starts, last_ordinal);
    update snapshot s
       set joined = s.joined || jsonb_build_object(
               'serverName', described.server_name, 'databaseName', described.database_name,
               'attempts', replaced.attempts, 'unlistedSince', replaced.create_time, 'listedAt', clock_timestamp(),
               'targets', (select count(*) from snapshot_target d
                            where d.snapshot_id = step.snapshot_id and d.ordinal > last_ordinal))
     where s.snapshot_id = step.snapshot_id;
    return query
    select p_unlisted, described.server_id, null::text, described.database_name, true, true
    union all
    select d.ordinal, d.server_id, d.pool_name, d.database_name, d.labels ? 'muster.unlisted',
           d.ordinal = any(skipped_ordinals)
      from snapshot_target d
     where d.snapshot_id = step.snapshot_id and d.ordinal > last_ordinal;
end $$;
comment on function jobs_internal.join_targets(
    bigint, uuid, integer, integer, text[], text[], text[], text[], text[], text[], jsonb[], uuid[], uuid[], integer[]) is
    'A server, or a database, that could not be listed when the step began has been listed: these targets take its '
    'place, after the last target and in the last wave. Returns the target that was replaced, then the new ones; '
    'nothing when that target has ended or runs, or the step is being cancelled.';
