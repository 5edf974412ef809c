-- for: agent
create or replace function jobs_internal.diagnose() returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    prefix constant text := regexp_replace(current_user::text, 'owner$', '');
    here constant oid := (select d.oid from pg_database d where d.datname = current_database());
    holders jsonb;
begin
    with blocker (pid, waited_since) as (
        -- Sessions that one of the account's own sessions waits for.
        select b.pid, w.waitstart
          from pg_locks w
          join pg_stat_activity a on a.pid = w.pid
          cross join lateral unnest(pg_blocking_pids(w.pid)) b (pid)
         where not w.granted and a.datid = here and starts_with(a.usename::text, prefix)
        union all
        -- Sessions that lock a table of the account in a mode that conflicts, between two attempts of the engine.
        select l.pid, null
          from pg_locks l
          join pg_class c on c.oid = l.relation and c.relnamespace = 'jobs_internal'::regnamespace
          join pg_stat_activity a on a.pid = l.pid and a.usename is not null  -- not an autovacuum worker
         where l.granted and l.locktype = 'relation' and l.database = here
           and l.mode in ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                          'AccessExclusiveLock')
    )
    select jsonb_agg(jsonb_build_object('pid', h.pid, 'user', h.usename, 'application', h.application_name,
                                        'since', h.since, 'waited_since', h.waited_since) order by h.pid)
      into holders
      from (select a.pid, a.usename, a.application_name, coalesce(a.xact_start, a.backend_start) as since,
                   min(b.waited_since) as waited_since
              from blocker b
              join pg_stat_activity a on a.pid = b.pid
             -- The account's own sessions often wait for each other, for a short time.
             where not starts_with(coalesce(a.usename::text, ''), prefix)
             group by a.pid, a.usename, a.application_name, a.xact_start, a.backend_start) h;
    return jsonb_build_object(
        'holders', coalesce(holders, '[]'),
        'public_connects', has_database_privilege('public', here, 'connect'),
        'close', format('GRANT CONNECT ON DATABASE %1$I TO %2$I, %3$I, %4$I, %5$I, %6$I; '
                        'REVOKE CONNECT ON DATABASE %1$I FROM PUBLIC;', current_database(), prefix || 'agent',
                        prefix || 'engine', prefix || 'reader', prefix || 'operator', prefix || 'admin'));
end $$;
comment on function jobs_internal.diagnose() is
    'Sessions of other roles that hold a lock which the account needs; whether PUBLIC may connect to the database, '
    'and the statements that revoke that. What PostgreSQL does not show of another role''s session is null.';
