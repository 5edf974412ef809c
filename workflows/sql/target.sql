-- name: enumerate_databases
-- Every database of a server with what decides whether jobs reach it; size only where it may be read.
select d.datname as name,
       pg_get_userbyid(d.datdba) as owner,
       d.datallowconn as connectable,
       d.datistemplate as template,
       d.datconnlimit = -2 as invalid,
       has_database_privilege(d.oid, 'connect') as granted,
       case when has_database_privilege(d.oid, 'connect') and d.datallowconn
            then pg_database_size(d.oid) end as size_bytes
  from pg_database d
 order by d.datname;

-- name: foreign_sessions
-- Who else is connected to a database now. Idle sessions of job accounts do not count: a drop waits until they are closed.
select pid, usename as login, application_name, client_addr::text as address, state
  from pg_stat_activity
 where datname = $1
   and pid <> pg_backend_pid()
   and backend_type = 'client backend'
   and not (application_name = 'muster' and state = 'idle')
 order by pid
 limit 20;

-- name: tables_with_pages
-- User tables that are not empty files, each with the question whether it holds a row, if that may be asked.
select format('%I.%I', n.nspname, c.relname) as name,
       case when has_table_privilege(c.oid, 'select') and has_schema_privilege(n.oid, 'usage')
            then format('select exists (select from %I.%I)', n.nspname, c.relname) end as question
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'm')
   and n.nspname not in ('pg_catalog', 'information_schema')
   and n.nspname !~ '^pg_(toast|temp)'
   and pg_relation_size(c.oid) > 0
 order by pg_relation_size(c.oid) desc;
