"""The fake node agent and the real one, on the same scenario: what a test of accounts relies on."""

from uuid import uuid4

import asyncpg
import pytest

from muster.core.clock import Clock
from muster.core.errors import Fault
from nodeagent.protocol import Drain, ReadEpoch, RemoveSchema, SyncDirectory, UpgradeSchema
from tests.support.control_db import SERVER, Account, a_control_database, agent_beside
from tests.support.fake_agent import FakeAgent


class Fake:
    def __init__(self, keyring) -> None:
        self.agent, self.keyring = FakeAgent(), keyring

    async def run(self, account: Account, command, id=None, role="agent"):
        login = account.login(self.keyring, role)
        return await self.agent.run(account.uid, id or uuid4(), command, login)

    async def begin(self, account: Account) -> None:
        self.agent.create(SERVER, account.database)

    async def engine(self, account: Account, epoch: int) -> bool:
        return self.agent.of(account.uid).install_epoch(epoch, uuid4(), Clock().now())

    async def drop(self, account: Account) -> None:
        del self.agent.databases[SERVER, account.database]

    async def roles(self, account: Account) -> list[str]:
        return sorted(self.agent.roles)


class Real:
    def __init__(self, agent) -> None:
        self.agent, self.keyring = agent, agent.keyring

    async def run(self, account: Account, command, id=None, role="agent"):
        login = account.login(self.keyring, role)
        return await self.agent.client.run(account.uid, id or uuid4(), command, login)

    async def begin(self, account: Account) -> None:
        pass

    async def engine(self, account: Account, epoch: int) -> bool:
        rows = await account.fetch(
            "select jobs_internal.install_epoch($1, $2, 'here', '999.0')",
            epoch, uuid4(), role="engine",
        )  # fmt: skip
        return rows[0][0]

    async def drop(self, account: Account) -> None:
        await self.agent.databases.close()
        connection = await asyncpg.connect(account.targets.url("postgres", account.administrator))
        await connection.execute(f'drop database "{account.database}" with (force)')
        await connection.close()

    async def roles(self, account: Account) -> list[str]:
        connection = await asyncpg.connect(account.targets.url("postgres", account.targets.root))
        query = "select rolname from pg_roles where rolname like $1 order by 1"
        rows = await connection.fetch(query, account.roles.prefix + "%")
        await connection.close()
        return [row["rolname"] for row in rows]


@pytest.fixture(params=["fake", "real"])
async def agent(request, settings, db):
    async with agent_beside(settings, db) as real:
        yield Fake(real.keyring) if request.param == "fake" else Real(real)


@pytest.fixture
async def account(targets, agent) -> Account:
    account = await a_control_database(targets)
    await agent.begin(account)
    return account


async def test_a_life_of_commands_is_answered_alike(agent, account):
    install, id = account.install(agent.keyring), uuid4()

    made = await agent.run(account, install, id, "administrator")

    assert (made.identity, made.epoch) == (account.identity, 0)
    assert await agent.run(account, install, id, "administrator") == made
    assert await agent.roles(account) == sorted(account.roles.all)
    read = await agent.run(account, ReadEpoch())
    assert (read.epoch, read.generation, read.heartbeat_at) == (0, 0, None)
    assert (read.identity, read.database_oid) == (made.identity, made.database_oid)


async def test_epochs_only_rise(agent, account):
    await agent.run(account, account.install(agent.keyring), role="administrator")

    assert await agent.engine(account, 3)
    assert not await agent.engine(account, 3)
    assert not await agent.engine(account, 2)

    read = await agent.run(account, ReadEpoch())
    assert (read.epoch, read.generation) == (3, 1)
    assert read.heartbeat_at <= read.read_at


async def test_drain_directory_and_upgrade_are_answered_alike(agent, account):
    await agent.run(account, account.install(agent.keyring), role="administrator")

    synced = [await agent.run(account, SyncDirectory(revision=r, servers=())) for r in (5, 4)]
    await agent.run(account, UpgradeSchema(), role="administrator")
    drained = await agent.run(account, Drain())

    assert [each.applied for each in synced] == [True, False]
    assert (drained.draining, drained.running) == (True, 0)
    read = await agent.run(account, ReadEpoch())
    assert (read.draining, read.drained, read.directory_revision) == (True, True, 5)


async def test_another_account_is_kept_out(agent, account, targets):
    await agent.run(account, account.install(agent.keyring), role="administrator")
    other = Account(targets, account.database, account.administrator)

    with pytest.raises(Fault) as caught:
        await agent.run(other, other.install(agent.keyring), role="administrator")

    assert caught.value.code == "ControlDatabaseOccupied"
    with pytest.raises(Fault) as caught:
        await agent.run(other, ReadEpoch())
    assert caught.value.code == "TargetAuthenticationFailed"


@pytest.mark.parametrize("drop", [True, False])
async def test_nothing_but_the_schema_is_left_after_remove(agent, account, drop):
    await agent.run(account, account.install(agent.keyring), role="administrator")
    await agent.engine(account, 7)

    for _ in range(2):
        await agent.run(account, RemoveSchema(drop_schema=drop), role="administrator")

    assert await agent.roles(account) == []
    with pytest.raises(Fault) as caught:
        await agent.run(account, ReadEpoch())
    assert caught.value.code == "TargetAuthenticationFailed"
    again = await agent.run(account, account.install(agent.keyring), role="administrator")
    assert again.epoch == (0 if drop else 7)


async def test_a_dropped_database_is_said_to_be_gone_and_its_roles_can_be_removed(agent, account):
    await agent.run(account, account.install(agent.keyring), role="administrator")
    await agent.drop(account)

    with pytest.raises(Fault) as caught:
        await agent.run(account, ReadEpoch())
    await agent.run(account, RemoveSchema(), role="administrator")

    assert caught.value.code == "TargetDatabaseNotFound"
    assert await agent.roles(account) == []
