-- expand: a task can be handed to its host before there is room for it, to begin in the place of another one
alter table jobs_internal.dispatch
    add column leaders uuid[] not null default '{}',
    add constraint each_task_has_its_leader_or_none_has check
        (leaders = '{}' or cardinality(leaders) = cardinality(invocations));
comment on column jobs_internal.dispatch.leaders is
    'Of each task the invocation in whose place it begins, or null; nothing at all where none has one.';
