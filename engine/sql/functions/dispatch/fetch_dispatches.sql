-- for: engine
create or replace function jobs_internal.fetch_dispatches(p_host uuid, p_after bigint, p_hurried boolean)
returns setof jobs_internal.dispatched_task
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    directory constant bigint := (select r.revision from directory_revision r);
    batch dispatch;
    cancellation dispatched_task;
    days date[];
    day date;
begin
    if p_hurried then
        -- The call only deletes dispatches that the host has read, so its commit need not wait for the disk: a crash
        -- brings back at most dispatches that the next call deletes again.
        perform set_config('synchronous_commit', 'off', true);
    else
        -- Before any row, as revoke_host_tasks does; report follows in the same transaction.
        lock table report_lock in row share mode;
    end if;
    perform from host h where h.host_id = p_host and h.state <> 'gone';
    if not found then
        raise exception 'host % is not registered or has ended', p_host using errcode = 'MU004';
    end if;
    delete from dispatch b where b.host_id = p_host and b.number <= p_after;
    for batch in select b.* from dispatch b where b.host_id = p_host and b.number > p_after order by b.number loop
        days := batch.run_days[1:1];
        if days[1] <> any(batch.run_days) then
            days := array(select distinct d from unnest(batch.run_days) d order by d);
        end if;
        foreach day in array days loop
            return query select * from expand_dispatch(batch, day, directory);
        end loop;
        cancellation.number := batch.number;
        cancellation.kind := 'cancel';
        cancellation.started := false;
        cancellation.directory := directory;
        foreach cancellation.invocation_id in array batch.cancels loop
            return next cancellation;
        end loop;
    end loop;
end $$;
comment on function jobs_internal.fetch_dispatches(uuid, bigint, boolean) is
    'The tasks that a host must run and the invocations that it must cancel, after the dispatch p_after; that '
    'dispatch and earlier ones are deleted. Tasks that are finished or belong to another host are left out. With '
    'p_hurried, the transaction must not write anything else: synchronous_commit is off.';
