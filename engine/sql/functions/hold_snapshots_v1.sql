-- for: owner
create or replace function jobs_internal.hold_snapshots_v1() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        -- It would not see who began with one of them meanwhile.
        raise exception 'history is forgotten in read committed only' using errcode = 'feature_not_supported';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('muster snapshots', 0));
end $$;
comment on function jobs_internal.hold_snapshots_v1() is
    'Nobody begins a run with a snapshot that is there already until the transaction ends: it can be forgotten.';
