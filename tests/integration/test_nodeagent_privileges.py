"""What the roles of an account may do in its control database, and what nobody else may change."""

import asyncpg
import pytest

from nodeagent.protocol import DirectoryServer, Pause, ReadEpoch, SyncDirectory, VerifySchema
from tests.support.control_db import a_control_database, agent_beside

TABLES = [
    "instance", "host", "account_key", "command_journal", "audit", "schema_object",
    "directory_revision", "server_directory", "migration", "credential", "target_group_member",
    "job", "job_step", "script", "job_execution", "task",
]  # fmt: skip

UNSAFE = """
select p.oid::regprocedure::text
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal')
   and not (p.prosecdef and exists (select from unnest(p.proconfig) c where c ~ '^search_path=.*pg_temp$'))
"""
PUBLIC = """
select p.oid::regprocedure::text
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal')
   and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))
union all
select n.nspname from pg_namespace n
 where n.nspname in ('jobs', 'jobs_internal')
   and (n.nspacl is null or exists (select from aclexplode(n.nspacl) a where a.grantee = 0))
union all
select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('jobs', 'jobs_internal')
   and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
"""
TABLE_RIGHTS = """
select r.rolname, c.relname
  from pg_roles r, pg_class c join pg_namespace n on n.oid = c.relnamespace
 where r.rolname = any($1) and n.nspname in ('jobs', 'jobs_internal') and c.relkind in ('r', 'p', 'v', 'S')
   and (case when c.relkind = 'S' then has_sequence_privilege(r.oid, c.oid, 'usage, select, update')
             else has_table_privilege(r.oid, c.oid, 'select, insert, update, delete, truncate, references, trigger')
                  or has_any_column_privilege(r.oid, c.oid, 'select, insert, update, references') end)
"""
CALLABLE = """
select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal') and has_function_privilege($1, p.oid, 'execute')
"""
UNCOMMENTED = """
select c.oid::regclass::text || coalesce('.' || a.attname, '')
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where n.nspname in ('jobs', 'jobs_internal') and c.relkind in ('r', 'p', 'v')
   and (obj_description(c.oid, 'pg_class') is null or (a.attnum is not null and col_description(c.oid, a.attnum) is null))
union all
select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal') and obj_description(p.oid, 'pg_proc') is null
"""


@pytest.fixture
async def agent(settings, db):
    async with agent_beside(settings, db) as made:
        yield made


@pytest.fixture
async def account(agent, targets):
    made = await a_control_database(targets)
    await agent.install(made)
    return made


async def test_the_catalogue_shows_nothing_unsafe(account):
    assert await account.fetch(UNSAFE) == []
    assert await account.fetch(PUBLIC) == []
    assert await account.fetch(UNCOMMENTED) == []
    logins = [account.roles.agent, account.roles.engine]
    assert await account.fetch(TABLE_RIGHTS, logins) == []


async def test_each_check_fires_on_a_planted_mistake(account):
    await account.execute(
        "create function jobs.unsafe() returns int language sql security definer as 'select 1';"
        "create table jobs.open (x int); grant select on jobs.open to public"
    )

    assert [row[0] for row in await account.fetch(UNSAFE)] == ["jobs.unsafe()"]
    assert {row[0] for row in await account.fetch(PUBLIC)} == {"jobs.unsafe()", "jobs.open"}
    assert len(await account.fetch(UNCOMMENTED)) == 2
    assert len(await account.fetch(TABLE_RIGHTS, [account.roles.agent])) == 1


async def test_agent_and_engine_may_call_their_own_functions_only(account):
    agents = {row[0] for row in await account.fetch(CALLABLE, account.roles.agent)}
    engines = {row[0] for row in await account.fetch(CALLABLE, account.roles.engine)}

    assert "read_epoch" in agents and "check_epoch" in engines
    assert not agents & engines
    for group in account.roles.groups:
        callable_by = [row[0] for row in await account.fetch(CALLABLE, group)]
        assert [name for name in callable_by if not name.startswith("sp_")] == []


@pytest.mark.parametrize("role", ["agent", "engine"])
async def test_a_login_reads_writes_and_makes_nothing(account, role):
    connection = await account.connect(role)
    for statement in [
        *(f"select * from jobs_internal.{table}" for table in TABLES),
        "update jobs_internal.instance set epoch = 99",
        "delete from jobs_internal.command_journal",
        "create table jobs.mine (x int)",
        "create function jobs_internal.mine() returns int language sql as 'select 1'",
        "create schema mine",
        f"set role {account.roles.owner}",
        f"grant {account.roles.owner} to current_user",
    ]:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await connection.close()


async def test_two_accounts_on_one_server_are_blind_to_each_other(agent, account, targets):
    other = await a_control_database(targets)
    await agent.install(other)

    for role in ("agent", "engine"):
        connection = await account.connect(role, other.database)
        for statement in (
            "select jobs_internal.read_epoch()",
            "select jobs_internal.check_epoch(0)",
            "select * from jobs_internal.instance",
            f"set role {other.roles.agent}",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
        await connection.close()
    members = await account.fetch(
        "select m.roleid::regrole::text, m.member::regrole::text from pg_auth_members m"
        " where m.roleid::regrole::text like $1 and m.member::regrole::text like $2",
        account.roles.prefix + "%", other.roles.prefix + "%",
    )  # fmt: skip
    assert members == []


async def test_what_a_customer_plants_in_the_database_changes_nothing(agent, account):
    await account.execute(
        """
        create schema evil;
        grant all on schema evil to public;
        create function evil.now_evil(text, text, boolean) returns text language sql as 'select ''x''';
        create function evil.set_config(text, text, boolean) returns text language plpgsql
            as 'begin raise exception ''planted''; end';
        create function evil.clock_timestamp() returns timestamptz language plpgsql
            as 'begin raise exception ''planted''; end';
        create function evil.lt(bigint, bigint) returns boolean language sql as 'select true';
        create operator evil.< (leftarg = bigint, rightarg = bigint, function = evil.lt);
        create function evil.eq(uuid, uuid) returns boolean language sql as 'select false';
        create operator evil.= (leftarg = uuid, rightarg = uuid, function = evil.eq);
        create table evil.instance (epoch bigint, paused boolean);
        create domain evil.jsonb as text;
        grant all on all tables in schema evil to public;
        """
    )
    await account.execute(
        f'alter database "{account.database}" set search_path = evil, pg_catalog, public'
    )
    await account.execute(
        f'alter database "{account.database}" set default_transaction_isolation = serializable'
    )

    await agent.install(account)
    server = DirectoryServer(server_id="/x", name="x", hosts=("h",))
    await agent.run(account, SyncDirectory(revision=1, servers=(server,)))
    await agent.run(account, Pause())

    read = await agent.run(account, ReadEpoch())
    assert (read.paused, read.directory_revision, read.identity) == (True, 1, account.identity)
    verified = await agent.run(account, VerifySchema())
    assert (verified.missing, verified.changed, verified.added) == ((), (), ())


async def test_a_temporary_table_of_the_caller_is_not_mistaken_for_ours(account):
    connection = await account.connect("engine")
    await connection.execute(
        "create temp table instance (epoch bigint, released_at timestamptz);"
        "insert into instance values (99, null);"
        "set search_path = pg_temp, jobs_internal"
    )

    with pytest.raises(asyncpg.PostgresError) as caught:
        await connection.execute("select jobs_internal.check_epoch(99)")

    assert caught.value.sqlstate == "MU001"
    await connection.close()
