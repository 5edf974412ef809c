-- for: engine
create or replace function jobs_internal.check_epoch(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- Changing the epoch conflicts with this lock, writing a heartbeat does not. It is held in memory only: who just
    -- looks writes nothing, and its commit waits for no disk.
    lock table instance in row share mode;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- It would see the epoch that was in charge when it began.
        raise exception 'a fence needs read committed' using errcode = 'feature_not_supported';
    end if;
    perform from instance where epoch = p_epoch and released_at is null;
    if not found then
        raise exception 'epoch % is not in charge', p_epoch using errcode = 'MU001';
    end if;
end $$;
comment on function jobs_internal.check_epoch(bigint) is
    'First statement of every transaction of an engine: no other epoch can become current before its end, and a '
    'stale epoch fails here.';
