"""Install, upgrade, verify and remove, as a plain administrator on a real server."""

import contextlib
import secrets
import sys
from uuid import uuid4

import asyncpg
import pytest

from engine import sql
from muster.core.connect import Connector
from muster.core.errors import (
    Conflict,
    Fault,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Unavailable,
)
from muster.core.migrate import scripts
from nodeagent import control_db, registry
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.protocol import ReadEpoch, RemoveSchema, UpgradeSchema, VerifySchema
from nodeagent.schema import A
from tests.support.control_db import a_control_database, agent_beside
from tests.support.postgres import Role


@pytest.fixture
async def agent(settings, db):
    async with agent_beside(settings, db) as made:
        yield made


async def test_install_gives_a_sound_schema_that_the_agent_role_can_use(agent, targets):
    account = await a_control_database(targets)

    installed = await agent.install(account)

    assert (installed.identity, installed.epoch) == (account.identity, 0)
    read = await agent.run(account, ReadEpoch())
    assert (read.account_uid, read.identity) == (account.uid, account.identity)
    assert read.database_oid == installed.database_oid
    verified = await agent.run(account, VerifySchema())
    assert (verified.missing, verified.changed, verified.added) == ((), (), ())
    assert verified.public_key == account.public_key


async def test_everything_belongs_to_the_owner_role_and_the_administrator_is_an_admin(
    agent, targets
):
    account = await a_control_database(targets)

    await agent.install(account)

    owners = await account.fetch(
        "select distinct pg_get_userbyid(relowner) from pg_class c join pg_namespace n"
        " on n.oid = relnamespace where nspname like 'jobs%'"
        " union select pg_get_userbyid(nspowner) from pg_namespace where nspname like 'jobs%'"
    )
    assert [row[0] for row in owners] == [account.roles.owner]
    admin = account.roles.groups[2]
    assert (
        await account.fetch(
            "select pg_has_role($1, $2, 'USAGE')", targets.administrator.name, admin
        )
    )[0][0]
    can_login = {row[0] for row in await account.role_rows() if row[1]}
    assert can_login == {account.roles.agent, account.roles.engine}


async def test_a_second_install_changes_nothing_but_what_it_is_told(agent, targets):
    account = await a_control_database(targets)
    command_id = uuid4()
    first = await agent.install(account, command_id)
    before = await account.state()

    again = await agent.install(account, command_id)

    assert again == first
    assert await account.state() == before
    account.identity, account.agent_password = uuid4(), secrets.token_urlsafe()
    anew = await agent.install(account)
    assert anew.identity == first.identity
    assert (await agent.run(account, ReadEpoch())).identity == first.identity


async def test_the_same_id_with_other_arguments_is_a_conflict(agent, targets):
    account = await a_control_database(targets)
    command_id = uuid4()
    await agent.install(account, command_id)

    account.identity = uuid4()

    with pytest.raises(Conflict) as caught:
        await agent.install(account, command_id)
    assert caught.value.code == "IdempotencyKeyMismatch"


async def test_a_server_that_is_too_old_for_control_databases_is_refused(
    agent, targets, monkeypatch
):
    monkeypatch.setattr("nodeagent.schema.OLDEST", 99)
    account = await a_control_database(targets)

    with pytest.raises(InvalidRequest) as caught:
        await agent.install(account)

    assert (caught.value.code, caught.value.target) == (
        "ServerVersionUnsupported",
        "properties.databaseId",
    )
    assert await account.fetch("select from pg_namespace where nspname like 'jobs%'") == []
    assert await account.role_rows() == []


class Breaking(Connector):
    """Loses the connection at the n-th statement of an administrator's session."""

    at = 10**9

    async def open(self, endpoint, **named):
        connection = await super().open(endpoint, **named)
        count, limit = 0, self.at

        class Lossy:
            def __getattr__(self, name):
                value = getattr(connection, name)
                if name not in {"execute", "fetch", "fetchrow", "fetchval"}:
                    return value

                async def counted(*given):
                    nonlocal count
                    count += 1
                    if count == limit:
                        connection.terminate()
                    return await value(*given)

                return counted

        return Lossy()


async def test_an_install_that_breaks_off_anywhere_is_repeated_without_a_trace(
    settings, db, targets
):
    connector = Breaking(settings)
    async with agent_beside(settings, db, connector=connector) as agent:
        account = await a_control_database(targets)
        command_id, broken = uuid4(), 0
        for at in [*range(1, 90, 11), 10**9]:
            connector.at = at
            try:
                installed = await agent.install(account, command_id)
            except Unavailable:
                broken += 1
                roles = await account.role_rows()
                schemas = await account.fetch("select from pg_namespace where nspname like 'jobs%'")
                assert (roles, schemas) == ([], [])

        assert broken >= 5
        assert installed.identity == account.identity
        assert not (await agent.run(account, VerifySchema())).missing


async def test_a_removal_that_breaks_off_anywhere_is_repeated(settings, db, targets):
    connector = Breaking(settings)
    async with agent_beside(settings, db, connector=connector) as agent:
        account = await a_control_database(targets)
        await agent.install(account)
        command_id, broken = uuid4(), 0
        for at in [*range(1, 80, 13), 10**9]:
            connector.at = at
            try:
                removed = await agent.run(account, RemoveSchema(), command_id)
            except Unavailable:
                broken += 1
                assert len(await account.role_rows()) == 6

        assert broken >= 4
        assert removed.schema_kept is True
        assert await account.role_rows() == []


@pytest.mark.parametrize("name", ["jobs", "jobs_internal"])
async def test_a_foreign_schema_is_refused_and_left_alone(agent, targets, name):
    account = await a_control_database(targets)
    await account.execute(f"create schema {name}; create table {name}.t (x int)", "administrator")

    with pytest.raises(InvalidRequest) as caught:
        await agent.install(account)

    assert caught.value.code == "ControlDatabaseOccupied"
    assert await account.role_rows() == []
    await agent.run(account, RemoveSchema(drop_schema=True))
    assert await account.fetch(f"select * from {name}.t") == []


async def test_a_database_of_another_account_is_occupied(agent, targets):
    first = await a_control_database(targets)
    await agent.install(first)
    second = await a_control_database(targets)
    second.database = first.database

    with pytest.raises(InvalidRequest) as caught:
        await agent.install(second)

    assert caught.value.code == "ControlDatabaseOccupied"


async def test_an_older_schema_is_upgraded(settings, db, targets, tmp_path, monkeypatch):
    folder = tmp_path / "newer_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in scripts(sql.MIGRATIONS):
        (folder / name).write_text(text)
    new = ExpectedSchema().version + 1
    (folder / f"{new:04}_next.sql").write_text("-- expand: what comes next\nselect 1")
    monkeypatch.syspath_prepend(tmp_path)
    account = await a_control_database(targets)
    async with agent_beside(settings, db) as agent:
        await agent.install(account)

        expected_schema = ExpectedSchema(migrations="newer_migrations")
        async with agent_beside(settings, db, expected_schema=expected_schema) as newer:
            command_id = uuid4()
            upgraded = await newer.run(account, UpgradeSchema(), command_id)
            before = await account.state()
            assert await newer.run(account, UpgradeSchema(), command_id) == upgraded

            assert upgraded.schema_version == new
            assert await account.state() == before
            assert (await newer.run(account, ReadEpoch())).schema_version == new

        with pytest.raises(PreconditionFailed) as caught:
            await agent.run(account, UpgradeSchema())
        assert caught.value.code == "Incompatible"
    sys.modules.pop("newer_migrations", None)


async def test_only_a_changed_function_is_applied_again(agent, targets):
    account = await a_control_database(targets)
    await agent.install(account)
    name = "engine.sql.functions/check_epoch.sql"
    await account.execute(
        f"update jobs_internal.migration set digest = 'old' where name = '{name}'"
    )
    newest = "select name from jobs_internal.migration where applied_at > $1 order by 1"
    now = (await account.fetch("select clock_timestamp()"))[0][0]

    await agent.run(account, UpgradeSchema())

    assert [row[0] for row in await account.fetch(newest, now)] == [name]


async def test_upgrade_without_a_schema_says_so(agent, targets):
    with pytest.raises(NotFound) as caught:
        await agent.run(await a_control_database(targets), UpgradeSchema())

    assert caught.value.code == "ControlSchemaMissing"


async def test_a_change_by_hand_is_seen_and_an_install_repairs_functions(agent, targets):
    account = await a_control_database(targets)
    await agent.install(account)
    await account.execute(
        "create or replace function jobs_internal.end_host(p_host uuid) returns void"
        " language sql as 'select null::void';"
        "drop function jobs_internal.drain_hosts; create table jobs.extra (x int)"
    )

    verified = await agent.run(account, VerifySchema())

    assert verified.changed == ("function jobs_internal.end_host(p_host uuid)",)
    assert verified.missing == ("function jobs_internal.drain_hosts(p_epoch bigint)",)
    assert verified.added == ("column jobs.extra.x", "table jobs.extra")
    await account.execute("drop table jobs.extra")
    await agent.install(account)
    repaired = await agent.run(account, VerifySchema())
    assert (repaired.missing, repaired.changed, repaired.added) == ((), (), ())


@pytest.mark.parametrize("drop", [False, True])
async def test_remove_leaves_nothing_but_the_schema_unless_asked(agent, targets, drop):
    account = await a_control_database(targets)
    await agent.install(account)
    await agent.run(account, ReadEpoch())
    command_id = uuid4()

    first = await agent.run(account, RemoveSchema(drop_schema=drop), command_id)
    again = await agent.run(account, RemoveSchema(drop_schema=drop), command_id)

    assert first == again
    assert first.schema_kept is not drop
    assert await account.role_rows() == []
    schemas = await account.fetch("select nspname from pg_namespace where nspname like 'jobs%'")
    assert len(schemas) == (0 if drop else 2)
    if not drop:
        assert await account.fetch("select * from jobs_internal.account_key") == []
        await agent.run(account, RemoveSchema(drop_schema=True))
        assert not await account.fetch("select from pg_namespace where nspname like 'jobs%'")


async def test_a_schema_left_behind_is_taken_over_by_the_next_account(agent, targets):
    first = await a_control_database(targets)
    await agent.install(first)
    epoch = "select jobs_internal.install_epoch(7, gen_random_uuid(), 'h', '0.1.0')"
    await first.execute(epoch, "engine")
    await agent.run(first, RemoveSchema())
    second = await a_control_database(targets)
    second.database = first.database

    installed = await agent.install(second)

    assert (installed.identity, installed.epoch) == (second.identity, 7)
    verified = await agent.run(second, VerifySchema())
    assert verified.account_uid == second.uid
    assert (verified.missing, verified.changed, verified.added) == ((), (), ())
    assert (await agent.run(second, RemoveSchema(drop_schema=True))).schema_kept is False
    assert await second.role_rows() == []


async def test_a_dump_restored_without_owners_is_the_account_s_again(agent, targets):
    account = await a_control_database(targets)
    await agent.install(account)
    await account.execute(
        f'reassign owned by "{account.roles.owner}" to "{targets.administrator.name}"'
    )
    first, account.identity = account.identity, uuid4()

    installed = await agent.install(account)

    assert installed.identity == first
    assert not (await agent.run(account, VerifySchema())).changed


async def test_a_clone_is_told_by_its_oid(agent, targets):
    account = await a_control_database(targets)
    installed = await agent.install(account)
    clone = await a_control_database(targets, like=account.database)
    account.database = clone.database

    read = await agent.run(account, ReadEpoch())

    assert read.identity == installed.identity
    assert read.database_oid != installed.database_oid


async def test_roles_go_even_when_the_database_is_gone(agent, targets):
    account = await a_control_database(targets)
    await agent.install(account)
    dropped = account.database
    account.database = "postgres"
    await account.execute(f'drop database "{dropped}" with (force)')
    account.database = dropped

    with pytest.raises(NotFound):
        await agent.run(account, ReadEpoch())
    removed = await agent.run(account, RemoveSchema())

    assert removed.schema_kept is False
    account.database = "postgres"
    assert await account.role_rows() == []


@contextlib.asynccontextmanager
async def powerless(targets):
    """An administrator without CREATEROLE."""
    role = Role(f"plain_{secrets.token_hex(4)}", secrets.token_hex(16))
    root = await asyncpg.connect(targets.url("postgres", targets.root))
    try:
        await root.execute(f"create role {role.name} login createdb password '{role.password}'")
        yield role, root
    finally:
        await root.close()


async def test_without_createrole_the_error_holds_what_makes_it_work(agent, targets):
    async with powerless(targets) as (role, root):
        account = await a_control_database(targets, role)
        with pytest.raises(Forbidden) as caught:
            await agent.install(account)

        assert caught.value.code == "ControlDatabaseRightsMissing"
        assert account.agent_password not in caught.value.message
        await root.execute(caught.value.message.partition("run: ")[2])
        installed = await agent.install(account)

        assert installed.identity == account.identity
        assert not (await agent.run(account, VerifySchema())).missing
        await agent.run(account, RemoveSchema(drop_schema=True))
        assert len(await account.role_rows()) == 6  # those were not made by us


async def test_a_role_made_beforehand_with_another_password_is_told(agent, targets):
    async with powerless(targets) as (role, root):
        account = await a_control_database(targets, role)
        with pytest.raises(Forbidden) as caught:
            await agent.install(account)
        await root.execute(caught.value.message.partition("run: ")[2])
        account.engine_password = "another"

        with pytest.raises(Forbidden) as caught:
            await agent.install(account)

        assert f"alter role {account.roles.engine} login password" in caught.value.message


async def test_rights_that_were_taken_away_are_a_refusal_and_not_a_crash(agent, targets):
    account = await a_control_database(targets)
    await agent.install(account)
    await account.execute(f'revoke usage on schema jobs_internal from "{account.roles.agent}"')

    with pytest.raises(Fault) as caught:
        await agent.run(account, ReadEpoch())

    assert caught.value.code == "ControlDatabasePermissionDenied"


async def test_every_query_compiles_and_makes_a_promise(agent, targets, db):
    account = await a_control_database(targets)
    await agent.install(account)
    wrong = []
    connection = await account.connect("root")
    async with db.connection() as metadata:
        for queries, where in ((registry.Q, metadata), (control_db.Q, connection), (A, connection)):
            for name, text in queries.items():
                assert text.startswith("-- "), name
                try:
                    await where.prepare(text)
                except asyncpg.PostgresError as error:
                    wrong.append(f"{name}: {error}")
    await connection.close()
    assert wrong == []
