-- expand: names for the fields of dispatches, reports and completions
drop function if exists jobs_internal.report(uuid, bigint, jsonb, jsonb, jsonb, jsonb, jsonb);
drop function if exists jobs_internal.start_tasks(jsonb);
drop function if exists jobs_internal.record_commit_intents(jsonb);
drop function if exists jobs_internal.record_results(jsonb);
drop function if exists jobs_internal.record_results_as_json(jsonb);
drop function if exists jobs_internal.already_recorded(jsonb);
drop function if exists jobs_internal.release_tasks(jsonb);
drop function if exists jobs_internal.resolve_orphaned_attempts(bigint, jsonb);
drop function if exists jobs_internal.next_completions(uuid[], bigint[]);
drop function if exists jobs_internal.read_completions(bigint, uuid[], bigint[]);
drop function if exists jobs_internal.reserve_and_poll(
    bigint, uuid[], date[], uuid[], integer[], integer[], integer[], uuid[], uuid[], uuid[], bigint[]);
drop function if exists jobs_internal.fetch_dispatches(uuid, bigint, boolean);
drop function if exists jobs_internal.expand_dispatch(jobs_internal.dispatch, date);

-- Messages. Hosts and the core send and read them as JSON objects whose keys are the names of the attributes.
create type jobs_internal.dispatched_task as (
    number              bigint,
    kind                text,
    slot                uuid,
    started             boolean,
    run_day             date,
    job_execution_id    uuid,
    step_id             integer,
    ordinal             integer,
    attempt             integer,
    invocation_id       uuid,
    target_execution_id uuid,
    job_id              uuid,
    job_version         integer,
    run_create_time     timestamptz,
    target_type         text,
    target_id           uuid,
    server_id           text,
    server_name         text,
    pool_name           text,
    database_name       text,
    schema_name         text,
    credential_id       uuid,
    credential_version  bigint,
    first_start         timestamptz,
    tried_at            timestamptz,
    directory           bigint,
    script_outcome      text,
    overrides           jsonb,
    labels              jsonb
);
comment on type jobs_internal.dispatched_task is
    'A task as a host fetches it, with all that running it needs. Of a task that the host must cancel, only number, '
    'kind, started, invocation_id and directory are set.';
comment on column jobs_internal.dispatched_task.number is 'The dispatch.';
comment on column jobs_internal.dispatched_task.kind is 'task: to run; cancel: to cancel.';
comment on column jobs_internal.dispatched_task.slot is
    'Of a prefetched task: it starts when the tasks before it in this slot have finished.';
comment on column jobs_internal.dispatched_task.started is 'True when a call whose reply was lost started the task.';
comment on column jobs_internal.dispatched_task.first_start is 'Start of the first attempt on the target.';
comment on column jobs_internal.dispatched_task.directory is 'Revision of the directory when the task was fetched.';

comment on column jobs_internal.dispatched_task.script_outcome is
    'committed or unknown: what an earlier attempt knows about the script; this one begins with the verify query.';

create type jobs_internal.task_start as (
    run_day          date,
    job_execution_id uuid,
    step_id          integer,
    ordinal          integer,
    attempt          integer,
    invocation_id    uuid,
    backend_pid      integer,
    server_version   integer
);
comment on type jobs_internal.task_start is 'A host starts a task, in this session at the target.';

create type jobs_internal.commit_intent as (
    run_day          date,
    job_execution_id uuid,
    step_id          integer,
    ordinal          integer,
    attempt          integer,
    invocation_id    uuid,
    xact_id          text
);
comment on type jobs_internal.commit_intent is 'A host is about to send COMMIT for an attempt, with this transaction id.';

create type jobs_internal.task_result as (
    run_day          date,
    job_execution_id uuid,
    step_id          integer,
    ordinal          integer,
    attempt          integer,
    invocation_id    uuid,
    lifecycle        text,
    phase            text,
    retry            boolean,
    again            boolean,
    reason           text,
    sqlstate         text,
    message          text,
    detail           text,
    hint             text,
    context          text,
    position         integer,
    fingerprint      text,
    notices          jsonb,
    results          jsonb,
    result_hash      text,
    rows             bigint,
    bytes            bigint,
    statement_no     integer,
    timings          jsonb,
    blockers         jsonb,
    last_message     text,
    cancel_method    text,
    checkpoint       jsonb
);
comment on type jobs_internal.task_result is 'The outcome of an attempt.';
comment on column jobs_internal.task_result.retry is
    'True when nothing was committed, or the script is repeatable, and another attempt may succeed.';
comment on column jobs_internal.task_result.again is
    'True when the engine stopped the attempt in order to repeat it; the attempt does not count.';
comment on column jobs_internal.task_result.reason is 'The end reason of the attempt; null when it succeeded.';
comment on column jobs_internal.task_result.fingerprint is 'Equal for errors with an equal cause.';
comment on column jobs_internal.task_result.result_hash is 'In hexadecimal digits.';
comment on column jobs_internal.task_result.last_message is 'The message that the target''s execution shows.';
comment on column jobs_internal.task_result.cancel_method is 'The method that stopped the attempt.';

create type jobs_internal.task_release as (
    run_day          date,
    job_execution_id uuid,
    step_id          integer,
    ordinal          integer,
    attempt          integer,
    invocation_id    uuid,
    wait_reason      text,
    pause_seconds    double precision,
    message          text
);
comment on type jobs_internal.task_release is 'A host gives back a reserved task that it did not start.';
comment on column jobs_internal.task_release.pause_seconds is 'How long the target waits before its next attempt; null: not at all.';
comment on column jobs_internal.task_release.message is 'The message of a server that had no room.';

create type jobs_internal.completion_item as (
    invocation_id uuid,
    kind          text,
    lifecycle     text,
    attempts      integer,
    not_before    double precision,
    deadline      double precision,
    cancel_method text,
    reason        text,
    sqlstate      text,
    fingerprint   text
);
comment on type jobs_internal.completion_item is
    'The outcome of a task as the core applies it: the new state of the target, and the error of the attempt.';
comment on column jobs_internal.completion_item.kind is 'result: an attempt ended; release: a host gave the task back.';
comment on column jobs_internal.completion_item.lifecycle is 'Of the target.';
comment on column jobs_internal.completion_item.attempts is 'How many attempts the target has had.';
comment on column jobs_internal.completion_item.not_before is
    'Start of the next attempt at the earliest, in seconds since 1970; null: no pause.';
comment on column jobs_internal.completion_item.deadline is
    'End of the step''s timeout for an unfinished target, in seconds since 1970; null: no attempt was tried.';
comment on column jobs_internal.completion_item.reason is 'The end reason of the attempt, also when the target waits for another one.';
comment on column jobs_internal.completion_item.sqlstate is 'Of the attempt''s error.';
comment on column jobs_internal.completion_item.fingerprint is 'Of the attempt''s error: equal for equal causes.';

-- A new core begins after all completions: the rows of executions hold the same outcomes.
delete from jobs_internal.completion;
alter table jobs_internal.completion
    drop column report,
    add column items jobs_internal.completion_item[] not null;
comment on column jobs_internal.completion.items is 'The outcomes.';
