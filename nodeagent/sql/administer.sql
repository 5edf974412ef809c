-- name: gate
-- One administrator's command at a time in a control database.
select pg_advisory_xact_lock($1);

-- name: found
-- What a database holds of us: who owns its schemas, and whether there is an instance.
select current_user::text as login,
       (select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'jobs') as jobs,
       (select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'jobs_internal') as internal,
       to_regclass('jobs_internal.instance') is not null as has_instance,
       to_regprocedure('jobs_internal.begin_command(uuid, text, text, text, text)') is not null as has_journal;

-- name: kept_by
-- Of a schema that the administrator owns: the account it belonged to, and whether that one let go.
select account_uid, released_at is not null as released from jobs_internal.instance;

-- name: missing_roles
-- What is still to be run so that all roles of the account ($1 = their prefix, $2 and $3 = verifiers of
-- agent and engine) are as they must be, in order; `mark` follows where we made a role ourselves.
with me as (
    select current_user::text as login,
           current_setting('server_version_num')::integer >= 160000 as modern
), wanted (rank, name, attributes, verifier) as (
    values (1, $1::text || '_owner', 'nologin', null),
           (2, $1 || '_agent', 'login', $2::text),
           (3, $1 || '_engine', 'login', $3::text),
           (4, $1 || '_reader', 'nologin', null),
           (5, $1 || '_operator', 'nologin', null),
           (6, $1 || '_admin', 'nologin', null)
), membership (rank, role, member, admin, privilege) as (
    -- What the administrator makes in the schema belongs to the owner.
    select 11, $1 || '_owner', login, false, case when modern then 'SET' else 'MEMBER' end from me
    union all
    select 12, $1 || '_owner', login, false, 'USAGE' from me
    union all
    -- The server's administrator is an admin of the account.
    select 13, $1 || '_admin', login, false, 'MEMBER' from me
    union all
    -- A new engine ends the sessions of an old one, in a function that runs as the owner.
    select 14, $1 || '_engine', $1 || '_owner', false, 'USAGE'
    union all
    -- Functions of the owner will hand the group roles out.
    select 15, $1 || '_' || g, $1 || '_owner', true, 'MEMBER WITH ADMIN OPTION'
      from unnest(array['reader', 'operator', 'admin']) g
)
select w.rank,
       format('create role %I %s', w.name, w.attributes) || coalesce(format(' password %L', w.verifier), '') as statement,
       w.name as made,
       format('comment on role %I is %L', w.name, 'Made by Muster.') as mark
  from wanted w
 where not exists (select from pg_roles where rolname = w.name)
union all
select min(m.rank),
       format('grant %I to %I', m.role, m.member)
       || case when modern then ' with inherit true, set true, admin ' || m.admin::text
               when m.admin then ' with admin option'
               else '' end,
       null, null
  from me, membership m
  left join pg_roles r on r.rolname = m.role
  left join pg_roles u on u.rolname = m.member
 where not coalesce(pg_has_role(u.oid, r.oid, m.privilege), false)
 group by modern, m.role, m.member, m.admin
union all
select 20, format('grant create on database %I to %I', current_database(), login), null, null
  from me
 where not has_database_privilege(current_database(), 'create')
union all
select 21, format('grant connect on database %I to %I', current_database(), w.name), null, null
  from wanted w
  left join pg_roles r on r.rolname = w.name
 where w.attributes = 'login'
   and not coalesce(has_database_privilege(r.oid, current_database(), 'connect'),
                    has_database_privilege('public', current_database(), 'connect'))
 order by 1, 2;

-- name: close_to_public
-- The statements after which only the roles of the account ($1 = their prefix) and the owner may connect.
select format('grant connect on database %I to %I', current_database(), $1::text || '_' || r.name)
  from unnest(array['agent', 'engine', 'reader', 'operator', 'admin']) r (name)
union all
select format('revoke connect on database %I from public', current_database());

-- name: password
-- The statement that gives a role ($1) the password of a verifier ($2).
select format('alter role %I login password %L', $1::text, $2::text);

-- name: become
-- The statement after which everything made belongs to the role.
select format('set local role %I', $1::text);

-- name: unbecome
-- Back to the login.
set local role none;

-- name: create_schemas
-- The statements that make what is missing of the two schemas for the owner ($1), closed to the public.
select format('create schema if not exists %I authorization %I; revoke all on schema %I from public; '
              'comment on schema %I is %L', s.name, $1::text, s.name, s.name, s.remark)
  from (values ('jobs', 'The SQL API of the job account.'),
               ('jobs_internal', 'Tables and functions behind it; nothing here is an API.')) s (name, remark);

-- name: change_owner
-- The statements that give everything in the two schemas to a role ($1), the schemas first.
select statement
  from (select 1 as rank, format('alter schema %I owner to %I', nspname, $1::text) as statement
          from pg_namespace
         where nspname in ('jobs', 'jobs_internal')
        union all
        -- Indexes and the sequences of columns follow their tables.
        select 2, format('alter %s %I.%I owner to %I',
                         case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
                                        when 'S' then 'sequence' when 'c' then 'type' else 'table' end,
                         n.nspname, c.relname, $1)
          from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('jobs', 'jobs_internal')
           and c.relkind in ('r', 'p', 'v', 'm', 'S', 'c')
           and not (c.relkind = 'S' and exists (select from pg_depend d
                                                 where d.classid = 'pg_class'::regclass and d.objid = c.oid
                                                   and d.deptype in ('a', 'i') and d.refobjsubid > 0))
        union all
        select 3, format('alter routine %s owner to %I', p.oid::regprocedure, $1)
          from pg_proc p
          join pg_namespace n on n.oid = p.pronamespace
         where n.nspname in ('jobs', 'jobs_internal') and p.prokind in ('f', 'p')) s
 order by rank, statement;

-- name: grants
-- The statements after which only the roles of the account ($1 = their prefix) may do anything in
-- the schemas, and those only call and read what stands beside them ($2 functions and views, $3 who may).
select statement
  from (select 1 as rank, format('grant usage on schema jobs to %I, %I, %I, %I, %I', $1::text || '_agent',
                                 $1 || '_engine', $1 || '_reader', $1 || '_operator', $1 || '_admin') as statement
        union all
        select 1, format('grant usage on schema jobs_internal to %I, %I', $1 || '_agent', $1 || '_engine')
        union all
        select 2, format('revoke all on function %s from public, %I, %I, %I, %I, %I', p.oid::regprocedure,
                         $1 || '_agent', $1 || '_engine', $1 || '_reader', $1 || '_operator', $1 || '_admin')
          from pg_proc p
          join pg_namespace n on n.oid = p.pronamespace
         where n.nspname in ('jobs', 'jobs_internal')
        union all
        select 2, format('revoke all on %s from public, %I, %I, %I, %I, %I', c.oid::regclass,
                         $1 || '_agent', $1 || '_engine', $1 || '_reader', $1 || '_operator', $1 || '_admin')
          from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('jobs', 'jobs_internal') and c.relkind = 'v'
        union all
        select 3, format('grant execute on function %s to %I', p.oid::regprocedure, $1 || '_' || g.who)
          from unnest($2::text[], $3::text[]) g (name, who)
          join pg_proc p on p.proname = g.name
          join pg_namespace n on n.oid = p.pronamespace and n.nspname in ('jobs', 'jobs_internal')
        union all
        select 3, format('grant select on %s to %I', c.oid::regclass, $1 || '_' || g.who)
          from unnest($2::text[], $3::text[]) g (name, who)
          join pg_class c on c.relname = g.name and c.relkind = 'v'
          join pg_namespace n on n.oid = c.relnamespace and n.nspname in ('jobs', 'jobs_internal')) s
 order by rank, statement;

-- name: ledger
-- The migrations that were applied.
select name from jobs_internal.migration;

-- name: has_ledger
-- Whether any was.
select to_regclass('jobs_internal.migration') is not null;

-- name: put_instance
-- The account's own row; a schema that another account left begins again with the identity in the arguments.
insert into jobs_internal.instance as i (account_uid, identity, schema_version, min_engine_version)
values ($1, $2, $3, $4)
on conflict (singleton) do update
   set account_uid        = excluded.account_uid,
       identity           = case when i.released_at is null then i.identity else excluded.identity end,
       schema_version     = excluded.schema_version,
       min_engine_version = excluded.min_engine_version,
       paused             = i.paused and i.released_at is null,
       draining           = i.draining and i.released_at is null,
       released_at        = null
returning i.identity, i.epoch, i.schema_version,
          (select oid::bigint from pg_database where datname = current_database()) as database_oid;

-- name: set_version
-- After an upgrade.
update jobs_internal.instance set schema_version = $1, min_engine_version = $2;

-- name: retire_keys
-- Nothing new is sealed for any key but this one.
update jobs_internal.account_key set retired_at = clock_timestamp() where retired_at is null and public_key <> $1;

-- name: put_key
-- The account's current public key.
insert into jobs_internal.account_key (public_key) values ($1)
on conflict (public_key) do update set retired_at = null;

-- name: remember_schema
-- What is there now is what must be there.
select jobs_internal.remember_schema();

-- name: hold_instance
-- Waits for every transaction that checks the epoch, as long as one may wait for a lock, and lets none of them begin.
lock table jobs_internal.instance in exclusive mode;

-- name: release
-- Releases the account, after hold_instance: no engine may write any more, and its keys are forgotten.
with forgotten as (delete from jobs_internal.account_key),
     ended as (update jobs_internal.host
                  set state = 'gone', running = 0, ended_at = clock_timestamp()
                where state <> 'gone')
update jobs_internal.instance set released_at = clock_timestamp() where released_at is null;

-- name: revoke_statements
-- The statements that take from the roles of the account ($1 = their names) the database, and with $2 the
-- schemas and what is in them.
select format('revoke all on %s from %I', p.place, r.rolname)
  from pg_roles r
  cross join lateral (
      select format('database %I', current_database()) as place
      union all
      select format(kind || '%I', n.nspname)
        from pg_namespace n
        cross join unnest(array['schema ', 'all routines in schema ', 'all tables in schema ']) kind
       where $2::boolean and n.nspname in ('jobs', 'jobs_internal')) p
 where r.rolname = any($1::text[]);

-- name: drop_schemas
-- With everything in them, and what depends on that.
drop schema if exists jobs, jobs_internal cascade;

-- name: drop_roles
-- The statements that drop those of the roles ($1, in order) that carry our mark.
select format('drop role %I', r.rolname)
  from unnest($1::text[]) with ordinality n (name, rank)
  join pg_roles r on r.rolname = n.name
 where shobj_description(r.oid, 'pg_authid') = 'Made by Muster.'
 order by n.rank;

-- name: describe
-- Every object of the two schemas, for the snapshot.
select kind, name, definition from jobs_internal.describe_schema();
