-- expand: what ran: executions of jobs, steps and targets, their tasks, slots and cancellations
create table jobs_internal.job_execution (
    job_execution_id    uuid primary key,
    job_id              uuid not null references jobs_internal.job,
    job_version         integer not null,
    run_day             date not null,
    lifecycle           text not null default 'Created',
    origin              text not null,
    slot                timestamptz,
    rerun_of            uuid,
    plan_of             uuid,
    overrides           jsonb not null default '{}',
    actor               text not null,
    door                text not null,
    priority            integer not null default 0,
    create_time         timestamptz not null default clock_timestamp(),
    start_time          timestamptz,
    end_time            timestamptz,
    cancel_requested_at timestamptz,
    attempt             integer not null default 0,
    not_before          timestamptz,
    wait_reason         text,
    end_reason          text,
    last_message        text not null default 'Job execution created.',
    constraint a_lifecycle_is_known check (lifecycle in ('Created', 'InProgress', 'WaitingForChildJobExecutions',
        'WaitingForRetry', 'Succeeded', 'SucceededWithSkipped', 'Failed', 'TimedOut', 'Canceled', 'Skipped')),
    constraint an_origin_is_known check (origin in ('slot', 'caller', 'rerun', 'plan', 'system')),
    constraint only_a_slot_has_a_slot check ((origin = 'slot') = (slot is not null)),
    constraint only_a_rerun_has_an_origin check ((origin = 'rerun') = (rerun_of is not null)),
    constraint a_door_of_a_run_is_known check (door in ('rest', 'fsm', 'psql', 'engine')),
    constraint a_run_belongs_to_the_day_of_its_creation check (run_day = (create_time at time zone 'UTC')::date),
    constraint what_is_over_has_an_end check ((end_time is not null) = (lifecycle in
        ('Succeeded', 'SucceededWithSkipped', 'Failed', 'TimedOut', 'Canceled', 'Skipped')))
) with (fillfactor = 85);
create unique index a_slot_fires_once on jobs_internal.job_execution (job_id, slot) where slot is not null;
create index job_execution_by_job on jobs_internal.job_execution (job_id, create_time desc, job_execution_id desc);
create index job_execution_by_time on jobs_internal.job_execution (create_time desc, job_execution_id desc);
create index live_job_execution on jobs_internal.job_execution (job_id) where end_time is null;
comment on table jobs_internal.job_execution is 'A run of a job: the root of its step and target executions.';
comment on column jobs_internal.job_execution.job_execution_id is 'Chosen by the caller, or random.';
comment on column jobs_internal.job_execution.job_id is 'The job.';
comment on column jobs_internal.job_execution.job_version is 'The version that was current at the start; it stays.';
comment on column jobs_internal.job_execution.run_day is 'UTC day of creation: the partition of all that belongs to the run.';
comment on column jobs_internal.job_execution.lifecycle is 'Created, InProgress, WaitingFor…, or how it ended.';
comment on column jobs_internal.job_execution.origin is 'slot, caller, rerun, plan or system.';
comment on column jobs_internal.job_execution.slot is 'The instant of the schedule that it belongs to.';
comment on column jobs_internal.job_execution.rerun_of is 'The run whose targets it takes up again.';
comment on column jobs_internal.job_execution.plan_of is 'The stored plan that it carries out.';
comment on column jobs_internal.job_execution.overrides is 'What the start said beyond the job''s definition.';
comment on column jobs_internal.job_execution.actor is 'Who started it.';
comment on column jobs_internal.job_execution.door is 'By which way: rest, fsm, psql or engine.';
comment on column jobs_internal.job_execution.priority is 'Of the job when it started.';
comment on column jobs_internal.job_execution.create_time is 'When it was asked for.';
comment on column jobs_internal.job_execution.start_time is 'When the engine took it up.';
comment on column jobs_internal.job_execution.end_time is 'When it was over.';
comment on column jobs_internal.job_execution.cancel_requested_at is 'When somebody first wanted it to stop.';
comment on column jobs_internal.job_execution.attempt is 'Passes over the targets that had not succeeded.';
comment on column jobs_internal.job_execution.not_before is 'When the next pass may begin.';
comment on column jobs_internal.job_execution.wait_reason is 'Why it waits.';
comment on column jobs_internal.job_execution.end_reason is 'Why it ended as it did.';
comment on column jobs_internal.job_execution.last_message is 'For people.';

create table jobs_internal.snapshot (
    snapshot_id        uuid primary key,
    target_group_id    uuid not null,
    group_hash         bytea not null,
    directory_revision bigint not null,
    targets            integer not null,
    targets_hash       bytea not null,
    left_out           jsonb not null default '[]',
    made_at            timestamptz not null default clock_timestamp()
);
create index snapshot_by_age on jobs_internal.snapshot (made_at);
comment on table jobs_internal.snapshot is 'What a target group resolved to: shared by runs, plans, reruns and approvals.';
comment on column jobs_internal.snapshot.snapshot_id is 'Named by step executions.';
comment on column jobs_internal.snapshot.target_group_id is 'The group.';
comment on column jobs_internal.snapshot.group_hash is 'Of its definition at that time.';
comment on column jobs_internal.snapshot.directory_revision is 'Of the server directory at that time.';
comment on column jobs_internal.snapshot.targets is 'How many.';
comment on column jobs_internal.snapshot.targets_hash is 'SHA-256 over the targets in their order.';
comment on column jobs_internal.snapshot.left_out is 'Databases that are no targets, each with the reason.';
comment on column jobs_internal.snapshot.made_at is 'When.';

create table jobs_internal.snapshot_target (
    snapshot_id   uuid not null references jobs_internal.snapshot on delete cascade,
    ordinal       integer not null,
    target_id     uuid not null,
    target_type   text not null,
    server_id     text not null,
    server_name   text not null,
    pool_name     text,
    database_name text,
    schema_name   text,
    labels        jsonb not null default '{}',
    credential_id uuid,
    rule          uuid not null,
    primary key (snapshot_id, ordinal),
    constraint a_target_is_taken_once unique (snapshot_id, target_id)
);
comment on table jobs_internal.snapshot_target is 'One target of a snapshot.';
comment on column jobs_internal.snapshot_target.snapshot_id is 'The snapshot.';
comment on column jobs_internal.snapshot_target.ordinal is 'From 1, in the order in which targets start.';
comment on column jobs_internal.snapshot_target.target_id is 'Made from server, database and schema: the same in every run.';
comment on column jobs_internal.snapshot_target.target_type is 'SqlDatabase, SqlSchema, or SqlServer where the server could not be listed.';
comment on column jobs_internal.snapshot_target.server_id is 'Resource id, as in the directory.';
comment on column jobs_internal.snapshot_target.server_name is 'Short name.';
comment on column jobs_internal.snapshot_target.pool_name is 'The elastic pool that holds the database.';
comment on column jobs_internal.snapshot_target.database_name is 'The database.';
comment on column jobs_internal.snapshot_target.schema_name is 'The schema, where the target is one.';
comment on column jobs_internal.snapshot_target.labels is 'Of the server and of the query that named the target.';
comment on column jobs_internal.snapshot_target.credential_id is 'The member''s; null = another rule decides.';
comment on column jobs_internal.snapshot_target.rule is 'target_id of the member that took it in.';

create table jobs_internal.step_execution (
    run_day             date not null,
    job_execution_id    uuid not null,
    step_id             integer not null,
    step_execution_id   uuid not null default gen_random_uuid(),
    step_name           text not null,
    content_hash        bytea not null,
    snapshot_id         uuid,
    lifecycle           text not null default 'Created',
    create_time         timestamptz not null default clock_timestamp(),
    start_time          timestamptz,
    end_time            timestamptz,
    cancel_requested_at timestamptz,
    wave                integer not null default 1,
    waves               integer not null default 1,
    halted_at           timestamptz,
    wait_reason         text,
    end_reason          text,
    last_message        text not null default '',
    primary key (run_day, job_execution_id, step_id),
    constraint a_step_lifecycle_is_known check (lifecycle in ('Created', 'InProgress', 'WaitingForChildJobExecutions',
        'WaitingForRetry', 'Succeeded', 'SucceededWithSkipped', 'Failed', 'TimedOut', 'Canceled', 'Skipped')),
    constraint a_step_that_is_over_has_an_end check ((end_time is not null) = (lifecycle in
        ('Succeeded', 'SucceededWithSkipped', 'Failed', 'TimedOut', 'Canceled', 'Skipped')))
) partition by range (run_day);
create index step_execution_by_snapshot on jobs_internal.step_execution (snapshot_id);
comment on table jobs_internal.step_execution is 'A step of a run, made when it is reached.';
comment on column jobs_internal.step_execution.run_day is 'Copied from the run.';
comment on column jobs_internal.step_execution.job_execution_id is 'The run.';
comment on column jobs_internal.step_execution.step_id is 'In the run''s version.';
comment on column jobs_internal.step_execution.step_execution_id is 'Its own name.';
comment on column jobs_internal.step_execution.step_name is 'In the run''s version.';
comment on column jobs_internal.step_execution.content_hash is 'Of what runs.';
comment on column jobs_internal.step_execution.snapshot_id is 'Its targets; null until they are resolved.';
comment on column jobs_internal.step_execution.lifecycle is 'Agrees with its targets and ends after them.';
comment on column jobs_internal.step_execution.create_time is 'When it was reached.';
comment on column jobs_internal.step_execution.start_time is 'When its first target started.';
comment on column jobs_internal.step_execution.end_time is 'When its last target was over.';
comment on column jobs_internal.step_execution.cancel_requested_at is 'When somebody first wanted it to stop.';
comment on column jobs_internal.step_execution.wave is 'The wave that may start.';
comment on column jobs_internal.step_execution.waves is 'How many there are.';
comment on column jobs_internal.step_execution.halted_at is 'Since when nothing further starts because too much failed.';
comment on column jobs_internal.step_execution.wait_reason is 'Why it waits.';
comment on column jobs_internal.step_execution.end_reason is 'Why it ended as it did.';
comment on column jobs_internal.step_execution.last_message is 'For people.';

create table jobs_internal.target_execution (
    run_day             date not null,
    job_execution_id    uuid not null,
    step_id             integer not null,
    ordinal             integer not null,
    target_execution_id uuid not null default gen_random_uuid(),
    snapshot_id         uuid not null,
    lifecycle           text not null default 'Created',
    phase               text,
    wave                integer not null default 1,
    priority            integer not null default 0,
    attempts            integer not null default 0,
    worker_pool         text,
    not_before          timestamptz,
    create_time         timestamptz not null default clock_timestamp(),
    start_time          timestamptz,
    attempt_start_time  timestamptz,
    end_time            timestamptz,
    cancel_requested_at timestamptz,
    wait_reason         text,
    end_reason          text,
    last_message        text,
    checkpoint          jsonb,
    tried_at            timestamptz,
    free_attempts       integer not null default 0,
    primary key (run_day, job_execution_id, step_id, ordinal),
    constraint a_target_lifecycle_is_known check (lifecycle in
        ('Created', 'InProgress', 'WaitingForRetry', 'Succeeded', 'Failed', 'TimedOut', 'Canceled', 'Skipped')),
    constraint a_phase_is_known check (phase in ('connect', 'run', 'commit', 'verify', 'output')),
    constraint a_target_that_is_over_has_an_end check ((end_time is not null) = (lifecycle in
        ('Succeeded', 'Failed', 'TimedOut', 'Canceled', 'Skipped'))),
    constraint attempts_never_vanish check (attempts >= 0)
) partition by range (run_day);
comment on table jobs_internal.target_execution is 'A step of a run on one target.';
comment on column jobs_internal.target_execution.run_day is 'Copied from the run.';
comment on column jobs_internal.target_execution.job_execution_id is 'The run.';
comment on column jobs_internal.target_execution.step_id is 'The step.';
comment on column jobs_internal.target_execution.ordinal is 'The target, in the snapshot of the step.';
comment on column jobs_internal.target_execution.target_execution_id is 'Its own name: internal_execution_id in output tables.';
comment on column jobs_internal.target_execution.snapshot_id is 'Where the target is described.';
comment on column jobs_internal.target_execution.lifecycle is 'Created, InProgress, WaitingForRetry, or how it ended.';
comment on column jobs_internal.target_execution.phase is 'connect, run, commit, verify or output.';
comment on column jobs_internal.target_execution.wave is 'Of the rollout.';
comment on column jobs_internal.target_execution.priority is 'Copied from the run.';
comment on column jobs_internal.target_execution.attempts is 'How many have started.';
comment on column jobs_internal.target_execution.worker_pool is 'Which hosts may run it; null = all.';
comment on column jobs_internal.target_execution.not_before is 'When the next attempt may start.';
comment on column jobs_internal.target_execution.create_time is 'When the step was planned.';
comment on column jobs_internal.target_execution.start_time is 'When the first attempt started.';
comment on column jobs_internal.target_execution.attempt_start_time is 'When the newest attempt started.';
comment on column jobs_internal.target_execution.end_time is 'When it was over.';
comment on column jobs_internal.target_execution.cancel_requested_at is 'When somebody wanted it to stop.';
comment on column jobs_internal.target_execution.wait_reason is 'Why it waits.';
comment on column jobs_internal.target_execution.end_reason is 'Why it ended as it did.';
comment on column jobs_internal.target_execution.last_message is 'For people.';
comment on column jobs_internal.target_execution.checkpoint is 'Where a resumable script goes on.';
comment on column jobs_internal.target_execution.tried_at is
    'When its server first had no room for us: no attempt began, and the wait is bounded by the step''s timeout.';
comment on column jobs_internal.target_execution.free_attempts is
    'How many of its attempts we stopped ourselves: they do not count against the step''s retries.';

create table jobs_internal.task (
    run_day             date not null,
    job_execution_id    uuid not null,
    step_id             integer not null,
    ordinal             integer not null,
    attempt             integer not null,
    invocation_id       uuid not null,
    epoch               bigint not null,
    host_id             uuid not null,
    lifecycle           text not null default 'Created',
    create_time         timestamptz not null default clock_timestamp(),
    start_time          timestamptz,
    end_time            timestamptz,
    lease_until         timestamptz,
    backend_pid         integer,
    server_version      integer,
    xact_id             text,
    statement_no        integer,
    sqlstate            text,
    message             text,
    detail              text,
    hint                text,
    error_position      integer,
    error_fingerprint   text,
    notices             jsonb,
    results             jsonb,
    result_hash         bytea,
    rows                bigint,
    bytes               bigint,
    timings             jsonb,
    end_reason          text,
    context             text,
    blockers            jsonb,
    disowned            uuid,
    primary key (run_day, job_execution_id, step_id, ordinal, attempt),
    constraint a_task_lifecycle_is_known check
        (lifecycle in ('Created', 'InProgress', 'Succeeded', 'Failed', 'TimedOut', 'Canceled')),
    constraint a_task_that_is_over_has_an_end check ((end_time is not null) = (lifecycle in
        ('Succeeded', 'Failed', 'TimedOut', 'Canceled'))),
    constraint a_reservation_is_no_attempt check (case lifecycle
        when 'Created' then start_time is null when 'Canceled' then true else start_time is not null end)
) partition by range (run_day);
create unique index one_live_attempt on jobs_internal.task (run_day, job_execution_id, step_id, ordinal)
    where lifecycle in ('Created', 'InProgress');
comment on table jobs_internal.task is 'One attempt of a target execution; Created = reserved for a host, not yet an attempt.';
comment on column jobs_internal.task.run_day is 'Copied from the run.';
comment on column jobs_internal.task.job_execution_id is 'The run.';
comment on column jobs_internal.task.step_id is 'The step.';
comment on column jobs_internal.task.ordinal is 'The target, in the snapshot of the step.';
comment on column jobs_internal.task.attempt is 'From 1.';
comment on column jobs_internal.task.invocation_id is 'Each status write names it; a stale one is refused.';
comment on column jobs_internal.task.epoch is 'Of the engine that reserved it.';
comment on column jobs_internal.task.host_id is 'The host that runs it.';
comment on column jobs_internal.task.lifecycle is 'Created, InProgress, or how it ended.';
comment on column jobs_internal.task.create_time is 'When it was reserved.';
comment on column jobs_internal.task.start_time is 'Committed immediately before the script is sent.';
comment on column jobs_internal.task.end_time is 'When its outcome was recorded.';
comment on column jobs_internal.task.lease_until is 'Until when its host answers for it.';
comment on column jobs_internal.task.backend_pid is 'Of the session at the target.';
comment on column jobs_internal.task.server_version is 'Of the target.';
comment on column jobs_internal.task.xact_id is 'By which a lost COMMIT is asked for.';
comment on column jobs_internal.task.statement_no is 'The last statement that was completed.';
comment on column jobs_internal.task.sqlstate is 'Of the error.';
comment on column jobs_internal.task.message is 'Of the error.';
comment on column jobs_internal.task.detail is 'Of the error.';
comment on column jobs_internal.task.hint is 'Of the error.';
comment on column jobs_internal.task.error_position is 'Of the error, in characters of the script.';
comment on column jobs_internal.task.error_fingerprint is 'SQLSTATE and the message without names and numbers: equal causes are equal.';
comment on column jobs_internal.task.notices is 'What the target said beside its results.';
comment on column jobs_internal.task.results is 'Tags, row counts and bounded result sets, one per statement.';
comment on column jobs_internal.task.result_hash is 'By which two runs are compared.';
comment on column jobs_internal.task.rows is 'Returned or touched, in all.';
comment on column jobs_internal.task.bytes is 'Received from the target.';
comment on column jobs_internal.task.timings is 'Milliseconds for waiting, connecting, running, committing, recording.';
comment on column jobs_internal.task.end_reason is 'Why it ended as it did.';
comment on column jobs_internal.task.context is 'Of the error: where in functions it happened.';
comment on column jobs_internal.task.blockers is 'Sessions that held the lock which was not given.';
comment on column jobs_internal.task.disowned is
    'The invocation under which a host that was lost ran it: by which its session at the target is known.';

create table jobs_internal.slot (
    job_id           uuid not null references jobs_internal.job on delete cascade,
    slot             timestamptz not null,
    outcome          text not null,
    reason           text,
    job_execution_id uuid,
    decided_at       timestamptz not null default clock_timestamp(),
    primary key (job_id, slot),
    constraint a_slot_outcome_is_known check (outcome in ('fired', 'coalesced', 'missed', 'skipped')),
    constraint a_fired_slot_has_a_run check ((outcome = 'fired') = (job_execution_id is not null))
);
comment on table jobs_internal.slot is 'What became of each instant of a schedule.';
comment on column jobs_internal.slot.job_id is 'The job.';
comment on column jobs_internal.slot.slot is 'The instant.';
comment on column jobs_internal.slot.outcome is 'fired, coalesced, missed or skipped.';
comment on column jobs_internal.slot.reason is 'Why it did not fire.';
comment on column jobs_internal.slot.job_execution_id is 'The run.';
comment on column jobs_internal.slot.decided_at is 'When.';

create table jobs_internal.cancellation (
    cancellation_id  uuid primary key default gen_random_uuid(),
    job_execution_id uuid not null references jobs_internal.job_execution on delete cascade,
    step_id          integer,
    ordinal          integer,
    requested_by     text not null,
    door             text not null,
    reason           text,
    requested_at     timestamptz not null default clock_timestamp(),
    completed_at     timestamptz,
    cancel_method    text,
    constraint a_cancelled_target_has_a_step check (ordinal is null or step_id is not null),
    constraint a_door_of_a_cancellation_is_known check (door in ('rest', 'fsm', 'psql', 'engine')),
    constraint what_was_needed_is_known check
        (cancel_method in ('nothing', 'protocol', 'pg_cancel_backend', 'pg_terminate_backend'))
);
create index cancellation_by_run on jobs_internal.cancellation (job_execution_id);
create index open_cancellation on jobs_internal.cancellation (requested_at) where completed_at is null;
comment on table jobs_internal.cancellation is 'Who wanted what to stop, when, why and by which door, and what it took.';
comment on column jobs_internal.cancellation.cancellation_id is 'Its own name.';
comment on column jobs_internal.cancellation.job_execution_id is 'The run.';
comment on column jobs_internal.cancellation.step_id is 'One step of it; null = all.';
comment on column jobs_internal.cancellation.ordinal is 'One target of the step; null = all.';
comment on column jobs_internal.cancellation.requested_by is 'Who.';
comment on column jobs_internal.cancellation.door is 'By which way: rest, fsm, psql or engine.';
comment on column jobs_internal.cancellation.reason is 'Why.';
comment on column jobs_internal.cancellation.requested_at is 'When.';
comment on column jobs_internal.cancellation.completed_at is 'When nothing of it ran any more.';
comment on column jobs_internal.cancellation.cancel_method is 'nothing, protocol, pg_cancel_backend or pg_terminate_backend.';

create table jobs_internal.target_ledger (
    job_id           uuid not null,
    content_hash     bytea not null,
    target_id        uuid not null,
    lifecycle        text not null,
    end_reason       text,
    job_execution_id uuid not null,
    step_id          integer not null,
    ended_at         timestamptz not null,
    result_hash      bytea,
    primary key (job_id, content_hash, target_id)
) with (fillfactor = 85);
comment on table jobs_internal.target_ledger is 'The last outcome of each content on each target, written with the result.';
comment on column jobs_internal.target_ledger.job_id is 'The job.';
comment on column jobs_internal.target_ledger.content_hash is 'Of the step.';
comment on column jobs_internal.target_ledger.target_id is 'The same in every run.';
comment on column jobs_internal.target_ledger.lifecycle is 'How it ended.';
comment on column jobs_internal.target_ledger.end_reason is 'Why.';
comment on column jobs_internal.target_ledger.job_execution_id is 'In which run.';
comment on column jobs_internal.target_ledger.step_id is 'In which step.';
comment on column jobs_internal.target_ledger.ended_at is 'When.';
comment on column jobs_internal.target_ledger.result_hash is 'Of what it returned.';

-- Not a foreign key: that would look for the job once for every result.
create function jobs_internal.forget_outcomes() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    delete from target_ledger l using gone where l.job_id = gone.job_id;
    return null;
end $$;
comment on function jobs_internal.forget_outcomes() is 'With a job its last outcomes go; only a job without a run goes.';
create trigger a_job_takes_its_outcomes_along after delete on jobs_internal.job
    referencing old table as gone for each statement execute function jobs_internal.forget_outcomes();

create function jobs_internal.refuse_move() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    raise exception 'a % cannot go from % to %', replace(tg_table_name, '_', ' '), old.lifecycle, new.lifecycle
        using errcode = 'MU013';
end $$;
comment on function jobs_internal.refuse_move() is 'Only legal moves: what is over stays over, nothing becomes new again.';
create trigger a_run_moves_legally before update of lifecycle on jobs_internal.job_execution
    for each row when (old.lifecycle <> new.lifecycle and (old.end_time is not null or new.lifecycle = 'Created'))
    execute function jobs_internal.refuse_move();
create trigger a_step_moves_legally before update of lifecycle on jobs_internal.step_execution
    for each row when (old.lifecycle <> new.lifecycle and (old.end_time is not null or new.lifecycle = 'Created'))
    execute function jobs_internal.refuse_move();
create trigger a_target_moves_legally before update of lifecycle on jobs_internal.target_execution
    for each row when (old.lifecycle <> new.lifecycle and (old.end_time is not null or new.lifecycle = 'Created'
        or (old.lifecycle, new.lifecycle) in
           (('Created', 'WaitingForRetry'), ('WaitingForRetry', 'Succeeded'), ('Created', 'Succeeded'))))
    execute function jobs_internal.refuse_move();
create trigger a_task_moves_legally before update of lifecycle on jobs_internal.task
    for each row when (old.lifecycle <> new.lifecycle and (old.end_time is not null or new.lifecycle = 'Created'
        or (old.lifecycle = 'Created' and new.lifecycle in ('Succeeded', 'Failed', 'TimedOut'))))
    execute function jobs_internal.refuse_move();

create function jobs_internal.refuse_orphan() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    -- Locked, so that the run can't end while the step is being made.
    perform from job_execution
      where (job_execution_id, run_day) = (new.job_execution_id, new.run_day) and end_time is null for share;
    if not found then
        raise exception 'there is no such run, or it is over' using errcode = 'MU013';
    end if;
    return new;
end $$;
comment on function jobs_internal.refuse_orphan() is 'A step belongs to a run of its day that is not over.';
create trigger a_step_belongs_to_a_live_run before insert on jobs_internal.step_execution
    for each row execute function jobs_internal.refuse_orphan();

create function jobs_internal.end_after_steps() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    if exists (select from step_execution
                where (run_day, job_execution_id) = (new.run_day, new.job_execution_id) and end_time is null) then
        raise exception 'a run ends after its steps' using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.end_after_steps() is 'At commit, a run that is over has no step that is not.';
create constraint trigger a_run_ends_after_its_steps after update of end_time on jobs_internal.job_execution
    deferrable initially deferred for each row when (old.end_time is null and new.end_time is not null)
    execute function jobs_internal.end_after_steps();

create function jobs_internal.end_after_targets() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    if exists (select from target_execution
                where (run_day, job_execution_id, step_id) = (new.run_day, new.job_execution_id, new.step_id)
                  and end_time is null) then
        raise exception 'a step ends after its targets' using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.end_after_targets() is 'At commit, a step that is over has no target that is not.';
create constraint trigger a_step_ends_after_its_targets after update of end_time on jobs_internal.step_execution
    deferrable initially deferred for each row when (old.end_time is null and new.end_time is not null)
    execute function jobs_internal.end_after_targets();
