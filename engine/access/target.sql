-- name: contact
-- What a server's budget is made from; most logins are not shown what the sessions of others are, and count them.
select pg_catalog.current_setting('max_connections')::integer as max_connections,
       pg_catalog.current_setting('superuser_reserved_connections')::integer
           + coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0) as reserved,
       (select pg_catalog.count(*) from pg_catalog.pg_stat_activity a
         where coalesce(a.backend_type, 'client backend') = 'client backend' and a.datid is not null
           and a.application_name not like 'muster%')::integer as others;

-- name: watch_client
-- Fails where the server can't notice that its client is gone.
select pg_catalog.set_config('client_connection_check_interval', '1000', true);

-- name: timeline
-- Changes with each failover; after one, a transaction's id has no meaning any more.
select pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8);

-- name: crash_epoch
-- Changes whenever the server recovers from a crash, which throws its statistics away; a clean stop keeps them.
select extract(epoch from stats_reset)::text from pg_catalog.pg_stat_bgwriter;

-- name: unknown_parameters
-- Those of the names that the server does not know; a name with a dot can always be set.
select p.name
  from pg_catalog.unnest($1::text[]) p (name)
 where p.name not like '%.%'
   and not exists (select from pg_catalog.pg_settings s where pg_catalog.lower(s.name) = p.name);

-- name: type_names
-- How people write these types.
select t.oid::bigint as oid, pg_catalog.format_type(t.oid, null) as name
  from pg_catalog.unnest($1::oid[]) t (oid);

-- name: blockers
-- Who holds what that session waits for, as far as it may be seen.
select a.pid, a.application_name, a.state, a.xact_start as since, a.query_start
  from pg_catalog.pg_stat_activity a
 where a.pid = any (pg_catalog.pg_blocking_pids(
           (select s.pid from pg_catalog.pg_stat_activity s
             where s.usename = session_user and (s.pid = $1 or s.application_name = $2)
             order by s.wait_event_type = 'Lock' desc limit 1)))
 order by a.xact_start nulls last
 limit 10;

-- name: cancel_backend
-- Asks the sessions of an attempt to give up their statement.
select pg_catalog.pg_cancel_backend(a.pid)
  from pg_catalog.pg_stat_activity a
 where a.usename = session_user and (a.pid = $1 or a.application_name = $2);

-- name: terminate_backend
-- Ends the sessions of an attempt.
select pg_catalog.pg_terminate_backend(a.pid)
  from pg_catalog.pg_stat_activity a
 where a.usename = session_user and (a.pid = $1 or a.application_name = $2);

-- name: transaction_status
-- committed, aborted, in progress, or null when it is too old to be known.
select pg_catalog.txid_status($1::text::bigint);

-- name: invalid_indexes
-- Indexes that are maintained and never used: what a broken CONCURRENTLY leaves.
select pg_catalog.format('%I.%I', n.nspname, c.relname) as name
  from pg_catalog.pg_index i
  join pg_catalog.pg_class c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where not i.indisvalid and c.relkind = 'i'
 order by 1;

-- name: make_guard
-- The tables that guarded steps write to: one row per run, or per job for ever.
create schema if not exists muster_guard;
create table if not exists muster_guard.applied (
    job_execution_id uuid not null,
    step_id integer not null,
    target_id uuid not null,
    content_hash bytea not null,
    applied_at timestamptz not null default pg_catalog.now(),
    primary key (job_execution_id, step_id, target_id, content_hash)
);
create table if not exists muster_guard.applied_by_job (
    job_id uuid not null,
    step_name text not null,
    schema_name text not null,
    script_hash bytea not null,
    applied_at timestamptz not null default pg_catalog.now(),
    primary key (job_id, step_name, schema_name, script_hash)
);

-- name: guard_faults
-- Why the guard's schema and tables can't be used, one row each: 'missing', or what is wrong with it. Only the login
-- itself or a superuser may own them: another owner could write rows, or have its own code run by reading them.
with wanted (name, columns, key) as (
    values ('applied', 'job_execution_id uuid,step_id integer,target_id uuid,content_hash bytea,'
                || 'applied_at timestamp with time zone', '1 2 3 4'),
           ('applied_by_job', 'job_id uuid,step_name text,schema_name text,script_hash bytea,'
                || 'applied_at timestamp with time zone', '1 2 3 4')
), schema as (
    select n.oid, r.rolname, r.rolname = session_user or r.rolsuper as trusted
      from pg_catalog.pg_namespace n
      join pg_catalog.pg_roles r on r.oid = n.nspowner
     where n.nspname = 'muster_guard'
), relation as (
    select w.name, w.key, c.oid, c.relkind, c.relpersistence, c.relrowsecurity, c.relispartition, r.rolname,
           r.rolname = session_user or r.rolsuper as trusted,
           w.columns = (
               select pg_catalog.string_agg(
                          a.attname::text || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod), ',' order by a.attnum)
                 from pg_catalog.pg_attribute a
                where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attnotnull
           ) as shaped
      from wanted w
      left join pg_catalog.pg_class c
        on c.relname = w.name::pg_catalog.name and c.relnamespace = (select s.oid from schema s)
      left join pg_catalog.pg_roles r on r.oid = c.relowner
)
select 'missing' as fault where not exists (select from schema)
union all
select pg_catalog.format('the schema muster_guard belongs to %I', s.rolname) from schema s where not s.trusted
union all
select case
           when t.oid is null then 'missing'
           when not t.trusted then pg_catalog.format('muster_guard.%s belongs to %I', t.name, t.rolname)
           else pg_catalog.format('muster_guard.%s is not the table that Muster makes', t.name)
       end
  from relation t
 where t.oid is null or not t.trusted or t.relkind <> 'r' or t.relpersistence <> 'p' or t.relrowsecurity
    or t.relispartition or t.shaped is not true
    or exists (select from pg_catalog.pg_trigger g where g.tgrelid = t.oid)
    or exists (select from pg_catalog.pg_rewrite e where e.ev_class = t.oid)
    or exists (select from pg_catalog.pg_inherits i where i.inhparent = t.oid or i.inhrelid = t.oid)
    or not exists (select from pg_catalog.pg_index i
                    where i.indrelid = t.oid and i.indisprimary and i.indisvalid and i.indkey::text = t.key);

-- name: applied_in_run
-- A row when this run applied the script here before.
select 1 from muster_guard.applied a
 where a.job_execution_id operator(pg_catalog.=) $1::pg_catalog.uuid
   and a.step_id operator(pg_catalog.=) $2::pg_catalog.int4
   and a.target_id operator(pg_catalog.=) $3::pg_catalog.uuid
   and a.content_hash operator(pg_catalog.=) $4::pg_catalog.bytea;

-- name: applied_by_job
-- A row when any run of the job applied the script here before.
select 1 from muster_guard.applied_by_job a
 where a.job_id operator(pg_catalog.=) $1::pg_catalog.uuid
   and a.step_name operator(pg_catalog.=) $2::pg_catalog.text
   and a.schema_name operator(pg_catalog.=) $3::pg_catalog.text
   and a.script_hash operator(pg_catalog.=) $4::pg_catalog.bytea;

-- name: record_run
-- No row is inserted when there is one.
insert into muster_guard.applied (job_execution_id, step_id, target_id, content_hash)
values ($1, $2, $3, $4)
on conflict do nothing;

-- name: record_job
-- No row is inserted when there is one.
insert into muster_guard.applied_by_job (job_id, step_name, schema_name, script_hash)
values ($1, $2, $3, $4)
on conflict do nothing;

-- name: end_attempt
-- Ends the session of an attempt; no row once it is gone. A session with that pid that was there before
-- the attempt started is the one that the lost host had, independent of what it does now.
select pg_catalog.pg_terminate_backend(a.pid)
  from pg_catalog.pg_stat_activity a
 where a.usename = session_user
   and a.pid <> pg_catalog.pg_backend_pid()
   and (a.application_name = $2
        or (a.pid = $1 and a.backend_start <= $3::timestamptz + interval '5 seconds'));

-- name: writable
-- 'on' where nothing can be written.
select pg_catalog.current_setting('transaction_read_only');

-- name: output_table
-- A row for each column of the table, at least one if the schema exists: dbo stands for public where there is no dbo.
select n.nspname, c.oid is not null as found, a.attname
  from (select n.oid, n.nspname
          from pg_catalog.pg_namespace n
         where n.nspname = $1::pg_catalog.name or ($1::pg_catalog.name = 'dbo' and n.nspname = 'public')
         order by n.nspname = $1::pg_catalog.name desc
         limit 1) n
  left join pg_catalog.pg_class c
    on c.relnamespace = n.oid and c.relname = $2::pg_catalog.name and c.relkind in ('r', 'p', 'f', 'v')
  left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped;

-- name: end_other_writers
-- Ends the other sessions with that application_name.
select pg_catalog.pg_terminate_backend(a.pid)
  from pg_catalog.pg_stat_activity a
 where a.usename = session_user and a.application_name = $1 and a.pid <> pg_catalog.pg_backend_pid();
