-- for: engine
create or replace function jobs_internal.fetch_dispatches(p_host uuid, p_after bigint, p_hurried boolean)
returns table (number bigint, kind text, run_day date, job_execution_id uuid, step_id integer, ordinal integer,
               attempt integer, invocation_id uuid, target_execution_id uuid, job_id uuid, job_version integer,
               run_create_time timestamptz, overrides jsonb, target_type text, target_id uuid, server_id text,
               server_name text, pool_name text, database_name text, schema_name text, labels jsonb,
               credential_id uuid, credential_version bigint, first_start timestamptz, tried_at timestamptz,
               started boolean, script_outcome text, slot uuid, directory bigint)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    batch dispatch;
    known constant bigint := (select r.revision from directory_revision r);
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
        raise exception 'host % is not known or has ended', p_host using errcode = 'MU004';
    end if;
    delete from dispatch b where b.host_id = p_host and b.number <= p_after;
    for batch in select b.* from dispatch b where b.host_id = p_host and b.number > p_after order by b.number loop
        days := batch.run_days[1:1];
        if days[1] <> any(batch.run_days) then
            days := array(select distinct d from unnest(batch.run_days) d order by d);
        end if;
        foreach day in array days loop
            return query
            select batch.number, 'task', t.*, l.slot, known
              from unnest(batch.invocations, batch.slots) with ordinality l (invocation, slot, place)
              join expand_dispatch(batch, day) t on t.invocation_id = l.invocation
             order by l.place;
        end loop;
        if batch.cancels <> '{}' then
            return query
            select batch.number, 'cancel', null::date, null::uuid, null::integer, null::integer, null::integer, c.stop,
                   null::uuid, null::uuid, null::integer, null::timestamptz, null::jsonb, null::text, null::uuid,
                   null::text, null::text, null::text, null::text, null::text, null::jsonb, null::uuid, null::bigint,
                   null::timestamptz, null::timestamptz, false, null::text, null::uuid, known
              from unnest(batch.cancels) with ordinality c (stop, place)
             order by c.place;
        end if;
    end loop;
end $$;
comment on function jobs_internal.fetch_dispatches(uuid, bigint, boolean) is
    'The tasks that a host must run and the invocations that it must cancel, after the dispatch p_after; that '
    'dispatch and earlier ones are deleted. Tasks that are finished or belong to another host are left out. A task '
    'with a slot starts when the tasks before it in that slot have finished. A task with started was started by a '
    'call whose reply was lost. With p_hurried, the transaction must not write anything else: synchronous_commit is '
    'off.';
