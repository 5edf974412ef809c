-- for: operator, admin
create or replace function jobs.sp_rerun_execution(
    job_execution_id uuid, outcomes text[] default '{failed,timedOut}', target_ids uuid[] default null
) returns uuid
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    kinds constant text[] := '{failed,timedOut,canceled,skipped,unknown,succeeded}';
    now constant timestamptz := clock_timestamp();
    origin job_execution;
    rerun job_execution;
    restarted job;
    wrong text;
    who record;
begin
    select * into origin from job_execution x where x.job_execution_id = sp_rerun_execution.job_execution_id;
    if not found then
        raise exception 'execution % was not found', sp_rerun_execution.job_execution_id
            using errcode = 'MU010', column = 'job_execution_id';
    end if;
    select * into restarted from job j where j.job_id = origin.job_id and j.deleted_at is null for key share;
    if not found then
        raise exception 'the job of execution % was deleted', origin.job_execution_id
            using errcode = 'MU013', column = 'job_execution_id';
    elsif restarted.system then
        raise exception 'job "%" belongs to Muster itself and is not started by people', restarted.name
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    select o into wrong from unnest(sp_rerun_execution.outcomes) o
     where lower(o) <> all(select lower(k) from unnest(kinds) k) limit 1;
    if wrong is not null or (sp_rerun_execution.target_ids is null and coalesce(cardinality(sp_rerun_execution.outcomes), 0) = 0)
       or cardinality(sp_rerun_execution.outcomes) > cardinality(kinds)
    then
        perform raise_error('MU012', 'outcomes', format('outcomes is a list of %s', array_to_string(kinds, ', ')));
    end if;
    perform refuse_start(restarted);
    perform ensure_partitions((now at time zone 'UTC')::date);
    select * into who from current_actor();
    insert into job_execution (job_execution_id, job_id, job_version, run_day, origin, rerun_of, actor, door, priority,
                               create_time)
    values (gen_random_uuid(), restarted.job_id, restarted.version, (now at time zone 'UTC')::date, 'rerun',
            origin.job_execution_id, who.caller, who.door, restarted.priority, now)
    returning * into rerun;
    if select_rerun_targets(rerun, origin, sp_rerun_execution.outcomes, sp_rerun_execution.target_ids) = 0 then
        raise exception 'execution % has no target %, in a step that the job still has', origin.job_execution_id,
              case when sp_rerun_execution.target_ids is null
                   then format('that ended %s', array_to_string(sp_rerun_execution.outcomes, ' or '))
                   else 'with such an id' end
            using errcode = 'MU013', column = case when sp_rerun_execution.target_ids is null then 'outcomes'
                                                   else 'target_ids' end;
    end if;
    perform write_audit('sp_rerun_execution', jsonb_build_object(
        'job_name', restarted.name, 'job_execution_id', rerun.job_execution_id, 'rerun_of', origin.job_execution_id));
    perform pg_notify('muster_execution', '');
    return rerun.job_execution_id;
end $$;
comment on function jobs.sp_rerun_execution(uuid, text[], uuid[]) is
    'Starts the current version of the job on targets of an earlier run: those that ended as failed, timedOut, canceled, '
    'skipped or succeeded, or whose outcome is unknown, or those with the given target_ids. A target takes part from the '
    'first step on in which it was chosen. Returns the id of the new run.';
