-- for: engine
create or replace function jobs_internal.ensure_partitions(p_day date) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    suffix constant text := to_char(p_day, '_YYYYMMDD');
    parent text;
    fill integer;
begin
    if to_regclass('jobs_internal.task' || suffix) is not null then
        return;
    end if;
    -- One call at a time. Attaching takes this lock anyway, and partitions of other transactions are visible after it.
    lock table step_execution in share update exclusive mode;
    if to_regclass('jobs_internal.task' || suffix) is not null then
        return;
    end if;
    -- Created beside its parent and attached: transactions that read or write other days continue meanwhile.
    for parent, fill in values ('step_execution', 85), ('target_execution', 60), ('task', 100) loop
        execute format('create table jobs_internal.%I (like jobs_internal.%I including defaults including constraints)'
                       ' with (fillfactor = %s)', parent || suffix, parent, fill);
        execute format('comment on table jobs_internal.%I is %L',
                       parent || suffix, format('%s of the runs of %s.', parent, p_day));
        execute format('alter table jobs_internal.%I attach partition jobs_internal.%I for values from (%L) to (%L)',
                       parent, parent || suffix, p_day, p_day + 1);
    end loop;
end $$;
comment on function jobs_internal.ensure_partitions(date) is
    'Creates the partitions for runs of that UTC day. Repeated and concurrent calls are harmless.';
