-- name: control_databases
-- Databases that hold a job account: its roles have rights there, and no others should.
select d.datname as name
  from pg_catalog.pg_database d
 where exists (select from pg_catalog.aclexplode(d.datacl) a
                 join pg_catalog.pg_roles r on r.oid = a.grantee
                where r.rolname operator(pg_catalog.~) '^muster_[0-9a-f]{32}_(agent|engine)$');

-- name: schemas
-- The schemas of a database whose names are like the pattern, whether or not the login may use them.
select n.nspname as name
  from pg_catalog.pg_namespace n
 where n.nspname operator(pg_catalog.~~) $1
   and n.nspname not in ('pg_catalog', 'information_schema')
   and n.nspname operator(pg_catalog.!~) '^pg_(toast|temp)'
 order by n.nspname;

-- name: session
-- The session's server and TLS, and what the login may create; `tls` is null for a session without TLS.
select pg_catalog.current_setting('server_version_num')::integer as server_version,
       (select s.version from pg_catalog.pg_stat_ssl s where s.pid = pg_catalog.pg_backend_pid() and s.ssl) as tls,
       session_user::text as username,
       pg_catalog.pg_is_in_recovery() as standby,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create') as creates_schemas;

-- name: roles
-- Of each role that a script runs as: whether it exists, the login may take it, and it may use the schema. Whether the
-- schema exists is null where the target is no schema. Since version 16 a membership may exclude SET ROLE.
select r.name, o.oid is not null as present,
       case when o.oid is not null then
           pg_catalog.pg_has_role(session_user, o.oid, case
               when pg_catalog.current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end)
       end as granted,
       case when $2::text is not null then n.oid is not null end as has_schema,
       case when o.oid is not null and n.oid is not null then
           pg_catalog.has_schema_privilege(o.oid, n.oid, 'usage')
       end as uses_schema
  from pg_catalog.unnest($1::text[]) r (name)
  left join pg_catalog.pg_roles o on o.rolname = coalesce(r.name, session_user)::pg_catalog.name
  left join pg_catalog.pg_namespace n on n.nspname = $2::text::pg_catalog.name
 order by r.name nulls first;

-- name: guard
-- The login's rights in the schema of the tables that guarded steps write to; no row where there is no such schema.
select pg_catalog.has_schema_privilege(n.oid, 'usage') as uses, pg_catalog.has_schema_privilege(n.oid, 'create') as creates,
       coalesce((select pg_catalog.bool_and(pg_catalog.has_table_privilege(c.oid, 'select')
                                            and pg_catalog.has_table_privilege(c.oid, 'insert'))
                   from pg_catalog.pg_class c
                  where c.relnamespace = n.oid and c.relname in ('applied', 'applied_by_job')), true) as writes
  from pg_catalog.pg_namespace n
 where n.nspname = 'muster_guard';
