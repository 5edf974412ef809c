"""Who may connect to a control database, and who stands in the way of its account there."""

import asyncio
import secrets
from dataclasses import dataclass

import asyncpg
import msgspec
import pytest

from nodeagent.items import Diagnose
from nodeagent.protocol import UpgradeSchema
from tests.support.control_db import a_control_database, agent_beside
from tests.support.jobs_fixture import ACCOUNT, SERVER, start_jobs_api
from tests.support.postgres import Role

ALLOW = (
    "grant usage on schema jobs_internal to {0}",
    "grant update on jobs_internal.dispatch_lock, jobs_internal.instance to {0}",
)
HOLD = "begin; lock table jobs_internal.dispatch_lock in exclusive mode"
FENCE = "begin; lock table jobs_internal.instance in exclusive mode"
WAITS = "select from pg_locks where not granted and locktype = 'relation' and pid = $1"
PUBLIC = "select has_database_privilege('public', current_database(), 'connect')"


@dataclass
class Stranger:
    """A login of the server that nobody gave any right."""

    targets: object
    role: Role

    async def connect(self, database):
        return await asyncpg.connect(
            self.targets.url(database, self.role),
            server_settings={"application_name": "their tool"},
        )

    async def is_let_in(self, database):
        try:
            connection = await self.connect(database)
        except asyncpg.InsufficientPrivilegeError:
            return False
        await connection.close()
        return True


@pytest.fixture
async def stranger(targets):
    role = Role(f"stranger_{secrets.token_hex(4)}", "p")
    root = await asyncpg.connect(targets.url("postgres", targets.root))
    await root.execute(f"create role {role.name} login password 'p'")
    yield Stranger(targets, role)
    await root.execute(f"drop owned by {role.name}")
    await root.execute(f"drop role {role.name}")
    await root.close()


@pytest.fixture
async def agent(settings, db):
    async with agent_beside(settings, db) as made:
        yield made


async def install(agent, account, **more):
    command = msgspec.structs.replace(account.install(agent.keyring), **more)
    return await agent.run(account, command)


async def test_only_those_who_were_let_in_connect_to_a_control_database_that_muster_made(
    agent, control, stranger
):
    account = await a_control_database(control)
    await install(agent, account, revoke_public=True)
    seen = [await stranger.is_let_in(account.database)]

    for group in ("reader", "operator", "admin"):
        for verb in ("grant", "revoke"):
            call = f"select jobs.sp_{verb}_{group}('{stranger.role.name}')"
            await account.execute(call, role="administrator")
            seen.append(await stranger.is_let_in(account.database))

    assert seen == [False, True, False, True, False, True, False]
    for role in ("agent", "engine", "administrator"):
        await account.execute("select 1", role=role)


async def test_an_upgrade_closes_what_was_made_before(agent, control, stranger):
    account = await a_control_database(control)
    await install(agent, account)
    before = await stranger.is_let_in(account.database)

    await agent.run(account, UpgradeSchema(revoke_public=True))

    assert (before, await stranger.is_let_in(account.database)) == (True, False)
    await account.execute("select 1", role="engine")


async def test_a_database_that_the_login_does_not_own_is_installed_and_stays_open(
    agent, control, stranger
):
    account = await a_control_database(control)
    await account.execute(f'alter database "{account.database}" owner to {control.root.name}')
    await account.execute(
        f'grant create, connect on database "{account.database}" to {account.administrator.name}'
    )

    await install(agent, account, revoke_public=True)

    assert await stranger.is_let_in(account.database)


async def test_the_statements_of_the_diagnosis_close_a_database_to_strangers_alone(
    agent, control, stranger
):
    account = await a_control_database(control)
    await install(agent, account)
    open_ = await agent.run(account, Diagnose())
    await account.execute(open_.close, role="administrator")
    closed = await agent.run(account, Diagnose())

    assert (open_.public_connects, closed.public_connects) == (True, False)
    assert f"REVOKE CONNECT ON DATABASE {account.database} FROM PUBLIC;" in open_.close
    assert not await stranger.is_let_in(account.database)
    await account.execute("select 1", role="engine")


async def test_a_stranger_cannot_take_a_lock_of_the_account(agent, control, stranger):
    account = await a_control_database(control)
    await install(agent, account)
    holder = await stranger.connect(account.database)
    try:
        for statement in (HOLD, FENCE):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await holder.execute(statement)
            await holder.execute("rollback")
    finally:
        await holder.close()


async def test_a_stranger_who_holds_a_lock_of_the_account_is_named(agent, control, stranger):
    account = await a_control_database(control)
    await install(agent, account)
    for grant in ALLOW:
        await account.execute(grant.format(stranger.role.name))
    assert (await agent.run(account, Diagnose())).holders == ()
    holder = await stranger.connect(account.database)
    engine = await account.connect("engine")
    waiting = None
    try:
        await holder.execute(HOLD)
        (held,) = (await agent.run(account, Diagnose())).holders
        await holder.execute("rollback")
        await holder.execute(FENCE)
        waiting = asyncio.create_task(engine.execute("select jobs_internal.check_epoch(0)"))
        while not await account.fetch(WAITS, engine.get_server_pid()):
            await asyncio.sleep(0.01)
        (waited,) = (await agent.run(account, Diagnose())).holders
    finally:
        await holder.close()
        if waiting is not None:
            await waiting
        await engine.close()
        await account.execute(f"drop owned by {stranger.role.name}")

    who = (holder.get_server_pid(), stranger.role.name, "their tool")
    assert (held.pid, held.user, held.application) == who
    assert (waited.pid, waited.user, waited.application) == who
    assert held.waited_since is None and waited.waited_since is not None


async def test_an_account_made_through_muster_is_closed_and_its_doctor_names_who_holds_a_lock(
    settings, targets, stranger, tmp_path
):
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        (made,) = await jobs_api.control(PUBLIC)
        await jobs_api.control(
            f'grant connect on database "{jobs_api.names[0]}" to {stranger.role.name}'
        )
        holder = await stranger.connect(jobs_api.names[0])
        for grant in ALLOW:
            await jobs_api.control(grant.format(stranger.role.name))
        await holder.execute(HOLD)
        told = (await jobs_api.post(f"{ACCOUNT}/doctor")).json()
        await holder.close()
        await jobs_api.control(f"drop owned by {stranger.role.name}")

    assert made[0] is False
    assert told["healthy"] is False and told["hardening"] == []
    assert [(each["user"], each["application"]) for each in told["lockHolders"]] == [
        (stranger.role.name, "their tool")
    ]
    assert any(f"of '{stranger.role.name}'" in advice for advice in told["advice"])


async def test_a_control_database_that_was_there_before_is_left_open_and_the_doctor_shows_how_to_close_it(
    settings, targets, tmp_path
):
    root = await asyncpg.connect(targets.url("postgres", targets.administrator))
    await root.execute("create database control_theirs")
    await root.close()
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.an_account("theirs")
        told = (await jobs_api.post(f"{SERVER}/jobAgents/theirs/doctor")).json()

    (advice,) = told["hardening"]
    assert "REVOKE CONNECT ON DATABASE control_theirs FROM PUBLIC;" in advice
