-- name: databases
-- Every database of a server with what decides whether a job reaches it by enumeration.
select d.datname as name,
       d.datallowconn as connectable,
       d.datistemplate as template,
       d.datconnlimit = -2 as invalid,
       pg_catalog.has_database_privilege(d.oid, 'connect') as granted
  from pg_catalog.pg_database d
 order by d.datname;

-- name: schemas
-- The schemas of a database whose names are like the pattern and are not the server's own.
select n.nspname as name
  from pg_catalog.pg_namespace n
 where n.nspname operator(pg_catalog.~~) $1
   and n.nspname not in ('pg_catalog', 'information_schema')
   and n.nspname operator(pg_catalog.!~) '^pg_(toast|temp)'
   and pg_catalog.has_schema_privilege(n.oid, 'usage')
 order by n.nspname;

-- name: user_path
-- For what a user wrote: a query, or the name of a relation. Everything else here is looked up in pg_catalog alone.
select pg_catalog.set_config('search_path', '"$user", public, pg_temp', true);

-- name: relation
-- The question that reads a shard map: a relation by its name, perhaps with a schema.
select pg_catalog.format('select * from %s', pg_catalog.to_regclass($1)) as question
 where pg_catalog.to_regclass($1) is not null;

-- name: guard
-- Listing only looks, and never for long.
select pg_catalog.set_config('statement_timeout', '30s', true),
       pg_catalog.set_config('lock_timeout', '5s', true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', true);
