-- for: operator, admin
create or replace function jobs.sp_start_job(
    job_name text, inout job_execution_id uuid default null, targets jsonb default null,
    target_limit integer default null, overrides jsonb default null, plan_id uuid default null
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    today constant date := (now at time zone 'UTC')::date;
    started job;
    run job_execution;
    who record;
begin
    -- Deleting a job locks its row for update: a start and a deletion wait for each other.
    select * into started from job j
     where lower(j.name) = lower(sp_start_job.job_name) and j.deleted_at is null for key share;
    if not found then
        raise exception 'job "%" was not found', sp_start_job.job_name using errcode = 'MU010', column = 'job_name';
    elsif started.system and session_user::text <> regexp_replace(current_user::text, '_owner$', '_agent') then
        -- Only the agent starts a system job, the one for queries.
        raise exception 'job "%" is a system job and can''t be started', started.name
            using errcode = 'MU013', column = 'job_name';
    end if;
    if sp_start_job.job_execution_id is null
       or not exists (select from job_execution x where x.job_execution_id = sp_start_job.job_execution_id) then
        if sp_start_job.plan_id is not null
           and num_nonnulls(sp_start_job.targets, sp_start_job.target_limit, sp_start_job.overrides) > 0 then
            perform raise_error('MU012', 'plan_id', 'a plan is started as it is, without targets, target_limit and overrides');
        elsif sp_start_job.target_limit < 1 then
            perform raise_error('MU012', 'target_limit', 'target_limit is a number, 1 or more');
        elsif sp_start_job.overrides is not null then
            perform check_overrides(sp_start_job.overrides);
        end if;
        if sp_start_job.plan_id is not null then
            started.version := (find_plan(started, sp_start_job.plan_id)).job_version;
        end if;
        perform refuse_start(started);
        sp_start_job.job_execution_id := coalesce(sp_start_job.job_execution_id, gen_random_uuid());
        perform ensure_partitions(today);
        select * into who from current_actor();
        insert into job_execution (job_execution_id, job_id, job_version, run_day, origin, plan_of, overrides, actor,
                                   door, priority, create_time)
        values (sp_start_job.job_execution_id, started.job_id, started.version, today,
                case when sp_start_job.plan_id is null then 'caller' else 'plan' end, sp_start_job.plan_id,
                coalesce(sp_start_job.overrides, '{}') || case when sp_start_job.target_limit is null then '{}'
                    else jsonb_build_object('limit', sp_start_job.target_limit) end,
                who.caller, who.door, started.priority, now)
        on conflict (job_execution_id) do nothing
        returning * into run;
        if found then
            if sp_start_job.targets is not null then
                perform choose_targets(run.job_execution_id, sp_start_job.targets);
            elsif sp_start_job.plan_id is not null then
                perform choose_plan(run);
            end if;
            perform write_audit('sp_start_job', jsonb_strip_nulls(jsonb_build_object(
                'job_name', started.name, 'job_execution_id', sp_start_job.job_execution_id,
                'plan_id', sp_start_job.plan_id, 'targets', jsonb_array_length(sp_start_job.targets),
                'overrides', nullif(run.overrides, '{}'))));
            perform pg_notify('muster_execution', '');
            return;
        end if;
    end if;
    if not exists (select from job_execution x
                    where x.job_execution_id = sp_start_job.job_execution_id and x.job_id = started.job_id) then
        raise exception 'execution % belongs to another job', sp_start_job.job_execution_id
            using errcode = 'MU017', column = 'job_execution_id';
    end if;
end $$;
comment on function jobs.sp_start_job(text, uuid, jsonb, integer, jsonb, uuid) is
    'Starts a run of the current version of a job. The same id again for the same job is the same run. targets replace '
    'the target group of every step: [{"serverName": "eu1", "databaseName": "tenant_1", "schemaName": "app"}, …], where '
    'a server alone means all of its databases. target_limit takes the first targets of each step. overrides are '
    'timeoutSeconds, retryAttempts, maxParallelism, lockTimeoutSeconds and rollout for this run. plan_id runs the '
    'version and the targets of a stored plan.';
