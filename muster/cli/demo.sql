-- name: databases
-- Every database of the server.
select datname from pg_database;

-- name: create_database
-- The statement that copies a template, quoted by the server.
select format('create database %I template %I', $1::text, $2::text);

-- name: make_template
-- The statement that takes a database out of the targets and lets it be copied.
select format('alter database %I is_template true', $1::text);
