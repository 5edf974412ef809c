-- for: engine
create or replace function jobs_internal.fence_v1(p_epoch bigint) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- The epoch is a key: changing it conflicts with this lock, writing a heartbeat does not.
    perform from instance where epoch = p_epoch and released_at is null for key share;
    if not found then
        raise exception 'epoch % is not in charge', p_epoch using errcode = 'MU001';
    end if;
end $$;
comment on function jobs_internal.fence_v1(bigint) is
    'First statement of every writing transaction: until its end no other epoch can take charge; a stale one fails here.';
