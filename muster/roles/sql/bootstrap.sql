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

-- name: owner_statement
-- The text that makes the owner of the application's database; null when it is there. Nobody logs in as it.
select case when not exists (select from pg_catalog.pg_roles where rolname = $2)
            then format('create role %I nologin nosuperuser nocreatedb nocreaterole', $2::text)
       end
 where $1::text is not null;

-- name: reassign_statement
-- The text that hands over what the role of the processes owned in an older installation.
select format('reassign owned by %I to %I', $1::text, $2::text);

-- name: become_statement
-- The text by which a session takes on a role.
select format('set role %I', $1::text);

-- name: current_role
-- Of this session.
select current_user::text;

-- name: can_become_owner
-- Whether a role is the current one or the owner of the audit, or could become either.
select pg_has_role($1::text, current_user, 'member')
       or coalesce((select pg_has_role($1::text, c.relowner, 'member')
                      from pg_catalog.pg_class c
                     where c.oid = to_regclass('audit_event')), false);

-- name: runtime_rights
-- The text that lets a role run on the tables of the current one: audit events are written and read, never changed.
select format('
    grant usage on schema %1$I to %2$I;
    grant select, insert, update, delete on all tables in schema %1$I to %2$I;
    revoke insert, update, delete on migration, audit_chain, audit_link, audit_policy from %2$I;
    revoke update, delete on audit_event from %2$I;
    grant execute on function seal_audit(integer), prune_audit(integer) to %2$I;
', current_schema(), $1::text);

-- name: keep_audit
-- How long audit events are kept; null is for ever.
update audit_policy set kept = $1 where kept is distinct from $1;
