-- expand: whoever changes the epoch holds the instance alone, so that writers need not lock its row
create function jobs_internal.hold_instance() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    lock table instance in exclusive mode;
    return null;
end $$;
comment on function jobs_internal.hold_instance() is
    'Waits for every transaction behind a fence, of this or an older release, and lets none of them begin.';
-- Before any row is locked: a heartbeat that waited for the row would be waited for in turn.
create trigger an_epoch_changes_alone before update of epoch on jobs_internal.instance
    for each statement execute function jobs_internal.hold_instance();
comment on column jobs_internal.instance.epoch is
    'Fencing token of the engine in charge. Changing it locks the table, which waits for every writer that holds it in '
    'row share mode, while a heartbeat waits for nobody.';
