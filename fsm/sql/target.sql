-- name: about_server
-- What a plain administrator may know of its server.
select pg_catalog.current_setting('server_version') as version,
       pg_catalog.current_setting('server_version_num')::integer as number,
       pg_catalog.current_setting('max_connections')::integer
           - pg_catalog.current_setting('superuser_reserved_connections')::integer
           - coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0)
           - (select pg_catalog.count(*) from pg_catalog.pg_stat_activity a
               where coalesce(a.backend_type, 'client backend') = 'client backend' and a.datid is not null
                 and a.application_name not like 'muster%')::integer as unused_connections,
       (select rolcreatedb or rolsuper from pg_catalog.pg_roles where rolname = current_user) as may_create;

-- name: database_exists
-- Whether there is a database of exactly this name.
select exists (select from pg_catalog.pg_database where datname = $1);

-- name: database_is_ours
-- Whether the session's own role owns it.
select exists (
    select from pg_catalog.pg_database where datname = $1 and pg_catalog.pg_get_userbyid(datdba) = current_user
);

-- name: database_size
-- In bytes; null when it may not be read.
select case
           when pg_catalog.has_database_privilege(oid, 'connect')
                or pg_catalog.pg_has_role('pg_read_all_stats', 'member')
           then pg_catalog.pg_database_size(oid)
       end as size
  from pg_catalog.pg_database
 where datname = $1;

-- name: create_database
-- The statement that makes it, quoted by the server.
select pg_catalog.format('create database %I', $1::text);

-- name: drop_database
-- The statement that removes it, quoted by the server; $2 ends its sessions first.
select pg_catalog.format('drop database if exists %I', $1::text) || case when $2 then ' with (force)' else '' end;

-- name: role_exists
-- Whether there is a role of exactly this name.
select exists (select from pg_catalog.pg_roles where rolname = $1);

-- name: administrator
-- The statement that makes ($3 false) or renews ($3 true) a plain administrator; $2 is a verifier.
select pg_catalog.format(
    case when $3 then 'alter' else 'create' end
    || ' role %I login nosuperuser createdb createrole noreplication nobypassrls password %L',
    $1::text, $2::text);

-- name: other_sessions
-- How many sessions but ours are in a database.
select pg_catalog.count(*) from pg_catalog.pg_stat_activity where datname = $1 and pid <> pg_catalog.pg_backend_pid();

-- name: end_sessions
-- Ends the sessions of people in a database; those of the server's own work leave a DROP DATABASE by themselves.
select pg_catalog.pg_terminate_backend(pid)
  from pg_catalog.pg_stat_activity
 where datname = $1 and usename is not null and pid <> pg_catalog.pg_backend_pid();
