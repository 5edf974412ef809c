-- for: engine
create or replace function jobs_internal.check_epoch(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- A change of the epoch conflicts with this lock, a heartbeat does not. The lock is held in memory only: a
    -- transaction that only reads writes nothing, and its commit waits for no disk.
    lock table instance in row share mode;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- The transaction would see the epoch that was current when it began.
        raise exception 'checking the epoch needs isolation level read committed' using errcode = 'feature_not_supported';
    end if;
    perform from instance where epoch = p_epoch and released_at is null;
    if not found then
        raise exception 'epoch % is not in charge', p_epoch using errcode = 'MU001';
    end if;
end $$;
comment on function jobs_internal.check_epoch(bigint) is
    'First statement of every transaction of an engine: no other epoch can become current before its end, and a '
    'stale epoch fails here.';
