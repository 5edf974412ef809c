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
-- Who else is connected to a database now.
select pid, usename as login, application_name, client_addr::text as address, state
  from pg_stat_activity
 where datname = $1
   and pid <> pg_backend_pid()
   and backend_type = 'client backend'
 order by pid
 limit 20;

-- name: table_with_rows
-- A user table that holds at least one row, or none; a table that may not be read counts when it has statistics of rows.
select format('%I.%I', n.nspname, c.relname) as name
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.relkind = 'r'
   and n.nspname not in ('pg_catalog', 'information_schema')
   and n.nspname !~ '^pg_(toast|temp)'
   and case when has_table_privilege(c.oid, 'select') and has_schema_privilege(n.oid, 'usage')
            then query_to_xml(format('select 1 from %I.%I limit 1', n.nspname, c.relname), false, true, '')::text <> ''
            else c.reltuples <> 0 end
 limit 1;
