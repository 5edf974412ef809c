-- expand: how the core hands tasks to hosts, and how it learns what became of them
create sequence jobs_internal.dispatch_number as bigint;
comment on sequence jobs_internal.dispatch_number is 'Numbers of dispatches and completions; each writer''s rise.';

create table jobs_internal.dispatch (
    host_id     uuid not null references jobs_internal.host on delete cascade,
    number      bigint not null default nextval('jobs_internal.dispatch_number'),
    run_days    date[] not null default '{}',
    runs        uuid[] not null default '{}',
    steps       integer[] not null default '{}',
    ordinals    integer[] not null default '{}',
    attempts    integer[] not null default '{}',
    invocations uuid[] not null default '{}',
    cancels     uuid[] not null default '{}',
    slots       uuid[] not null default '{}',
    primary key (host_id, number),
    constraint tasks_are_given_in_columns_of_one_length check (
        cardinality(run_days) = cardinality(invocations) and cardinality(runs) = cardinality(invocations)
        and cardinality(steps) = cardinality(invocations) and cardinality(ordinals) = cardinality(invocations)
        and cardinality(attempts) = cardinality(invocations)),
    constraint each_task_has_its_slot_or_none_has check
        (slots = '{}' or cardinality(slots) = cardinality(invocations))
);
comment on table jobs_internal.dispatch is 'Tasks reserved for a host, and tasks that it must cancel: a batch a row, read by key.';
comment on column jobs_internal.dispatch.host_id is 'The host.';
comment on column jobs_internal.dispatch.number is 'Rises; the host asks for what is behind the last it knows.';
comment on column jobs_internal.dispatch.run_days is 'Of each task.';
comment on column jobs_internal.dispatch.runs is 'Of each task.';
comment on column jobs_internal.dispatch.steps is 'Of each task.';
comment on column jobs_internal.dispatch.ordinals is 'Of each task.';
comment on column jobs_internal.dispatch.attempts is 'Of each task.';
comment on column jobs_internal.dispatch.invocations is 'Of each task.';
comment on column jobs_internal.dispatch.cancels is 'Invocations that must stop.';
comment on column jobs_internal.dispatch.slots is
    'Of each prefetched task the slot, by the invocation that it was reserved for; null otherwise; empty where none is.';

create table jobs_internal.dispatch_lock ();
comment on table jobs_internal.dispatch_lock is
    'Always empty: lock_dispatch locks the table, which only one transaction at a time can do.';

create table jobs_internal.report_lock ();
comment on table jobs_internal.report_lock is
    'Always empty: reports of hosts lock the table together, lock_reports locks it alone.';

create table jobs_internal.completion (
    host_id uuid not null references jobs_internal.host on delete cascade,
    number  bigint not null default nextval('jobs_internal.dispatch_number'),
    report  jsonb not null,
    primary key (host_id, number)
);
comment on table jobs_internal.completion is
    'What became of tasks: a batch a row, read by key, also by the statement that reserves; the rows of executions are the truth.';
comment on column jobs_internal.completion.host_id is 'The host.';
comment on column jobs_internal.completion.number is 'Rises; the core asks for what is behind the last it knows.';
comment on column jobs_internal.completion.report is 'invocation, lifecycle of the target, attempt, when it may start again.';

create table jobs_internal.server_contact (
    server_id       text primary key,
    server_version  integer not null,
    max_connections integer not null,
    budget          integer not null,
    seen_at         timestamptz not null default clock_timestamp(),
    constraint a_budget_lets_two_in check (budget >= 2)
);
comment on table jobs_internal.server_contact is 'What hosts learned of servers when they first reached them.';
comment on column jobs_internal.server_contact.server_id is 'As in the directory.';
comment on column jobs_internal.server_contact.server_version is 'server_version_num.';
comment on column jobs_internal.server_contact.max_connections is 'Its own limit.';
comment on column jobs_internal.server_contact.budget is 'How many sessions we allow ourselves there where nobody said otherwise.';
comment on column jobs_internal.server_contact.seen_at is 'When.';
