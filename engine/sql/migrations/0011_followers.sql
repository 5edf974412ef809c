-- expand: tasks are prefetched: sent to a host before their slot is free
alter table jobs_internal.dispatch
    add column slots uuid[] not null default '{}',
    add constraint each_task_has_its_slot_or_none_has check
        (slots = '{}' or cardinality(slots) = cardinality(invocations));
comment on column jobs_internal.dispatch.slots is
    'Of each prefetched task the slot, by the invocation that it was reserved for; null otherwise; empty where none is.';
