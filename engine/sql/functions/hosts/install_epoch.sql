-- for: engine
create or replace function jobs_internal.install_epoch(
    p_epoch bigint, p_workload uuid, p_host text, p_version text
) returns boolean
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set lock_timeout = '2s'
as $$
declare
    gives_up constant timestamptz := clock_timestamp() + interval '3 s';
    oldest text;
begin
    select min_engine_version into oldest from instance;
    if string_to_array(rtrim(regexp_replace(p_version, '[^0-9.].*$', ''), '.'), '.')::integer[]
       < string_to_array(oldest, '.')::integer[] then
        raise exception 'engine % is too old for this schema, which needs %', p_version, oldest
            using errcode = 'MU003';
    end if;
    -- One engine at a time: the lock below then waits only for writers, not for another engine that takes charge.
    lock table instance in share update exclusive mode;
    if not exists (select from instance where epoch < p_epoch and released_at is null) then
        return false;  -- without a lock that others wait for
    end if;
    perform set_config('lock_timeout', '200ms', true);
    loop
        begin
            lock table instance in exclusive mode;
            update instance
               set epoch        = p_epoch,
                   generation   = generation + 1,
                   workload_id  = p_workload,
                   host_name    = p_host,
                   version      = p_version,
                   started_at   = clock_timestamp(),
                   heartbeat_at = clock_timestamp()
             where epoch < p_epoch
               and released_at is null;
            return found;
        exception when lock_not_available then
            -- A writer of an older epoch that has not ended by itself: its process is stopped, or the network is slow.
            perform pg_terminate_backend(l.pid)
               from pg_locks l
               join pg_stat_activity a on a.pid = l.pid
              where l.locktype = 'relation'
                and l.database = (select oid from pg_database where datname = current_database())
                and l.relation = 'jobs_internal.instance'::regclass
                and l.mode in ('RowShareLock', 'RowExclusiveLock')
                and l.granted
                and a.usename = session_user
                and l.pid <> pg_backend_pid();
            if clock_timestamp() > gives_up then
                raise;
            end if;
        end;
    end loop;
end $$;
comment on function jobs_internal.install_epoch(bigint, uuid, text, text) is
    'True: the caller''s engine is in charge, and no writer of an older epoch can commit any more. False: a newer '
    'engine is in charge.';
