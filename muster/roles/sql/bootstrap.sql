-- name: server_version
-- As a number: 140005 for 14.5.
select current_setting('server_version_num')::int;

-- name: role_statement
-- The text that makes the application's role, or corrects it: login, no special right, its password.
select format(
    case when exists (select from pg_catalog.pg_roles where rolname = $1)
         then 'alter role %I login nosuperuser nocreatedb nocreaterole password %L'
         else 'create role %I login nosuperuser nocreatedb nocreaterole password %L'
    end, $1::text, $2::text);

-- name: database_statement
-- The text that makes the application's database; null when it is there.
select case when not exists (select from pg_catalog.pg_database where datname = $1)
            then format('create database %I owner %I', $1::text, $2::text)
       end;
