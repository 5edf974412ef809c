"""The epoch as a fence: what an engine that lost its charge can't do any more."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from nodeagent.protocol import Drain, ReadEpoch, RemoveSchema
from tests.support.control_db import a_control_database, agent_beside
from tests.support.launching import until

INSTALL = "select jobs_internal.install_epoch($1, $2, 'machine', $3)"
FENCE = "select jobs_internal.check_epoch($1)"
REGISTER = "select jobs_internal.register_host($1, $2, 'machine', 4711, 10)"


@pytest.fixture
async def agent(settings, db):
    async with agent_beside(settings, db) as made:
        yield made


@pytest.fixture
async def account(agent, targets):
    made = await a_control_database(targets)
    await agent.install(made)
    return made


@pytest.fixture
async def engine(account):
    opened = []

    async def one():
        opened.append(await account.connect("engine"))
        return opened[-1]

    yield one
    for connection in opened:
        await connection.close()


async def install(connection, epoch, version="0.1.0"):
    return await connection.fetchval(INSTALL, epoch, uuid4(), version)


async def test_only_a_higher_epoch_takes_charge(agent, account, engine):
    connection = await engine()

    assert [await install(connection, epoch) for epoch in (3, 3, 2, 5)] == [
        True,
        False,
        False,
        True,
    ]

    read = await agent.run(account, ReadEpoch())
    assert (read.epoch, read.generation, read.host_name) == (5, 2, "machine")
    assert read.heartbeat_at <= read.read_at


async def test_of_twenty_at_once_the_highest_wins(account, engine):
    connections = [await engine() for _ in range(20)]

    taken = await asyncio.gather(*(install(c, e) for e, c in enumerate(connections, start=1)))

    assert taken[-1] is True
    assert (await account.fetch("select epoch, generation from jobs_internal.instance"))[0] == (
        20,
        sum(taken),
    )


async def test_an_engine_that_is_too_old_is_refused(engine):
    assert await install(await engine(), 1, "0.2.0.dev3+gabc") is True
    with pytest.raises(asyncpg.PostgresError) as caught:
        await install(await engine(), 2, "0.0.9rc1")

    assert caught.value.sqlstate == "MU003"


async def test_a_stale_engine_fails_at_its_next_fence_and_heartbeat(engine):
    old, new = await engine(), await engine()
    await install(old, 1)
    await install(new, 2)

    for query in (
        FENCE,
        "select jobs_internal.heartbeat($1)",
        "select jobs_internal.adopt_hosts($1, 10)",
        "select jobs_internal.drain_hosts($1)",
    ):
        with pytest.raises(asyncpg.PostgresError) as caught:
            await old.execute(query, 1)
        assert caught.value.sqlstate == "MU001"
    await new.execute(FENCE, 2)


@pytest.mark.parametrize("holds", ["check_epoch", "heartbeat"])
async def test_a_writer_stopped_inside_its_transaction_never_commits(account, engine, holds):
    old, new = await engine(), await engine()
    await install(old, 1)
    transaction = old.transaction()
    await transaction.start()
    await old.execute(f"select jobs_internal.{holds}(1)")
    await old.execute("select jobs_internal.register_host($1, 1, 'zombie', 1, 1)", uuid4())

    assert await install(new, 2) is True

    with pytest.raises(
        (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    ):
        await transaction.commit()
    assert await account.fetch("select * from jobs_internal.host") == []


async def test_a_writer_that_ends_in_time_is_left_alone(engine):
    old, new = await engine(), await engine()
    await install(old, 1)
    transaction = old.transaction()
    await transaction.start()
    await old.execute(FENCE, 1)

    installing = asyncio.create_task(install(new, 2))
    await asyncio.sleep(0.05)
    await transaction.commit()

    assert await installing is True
    assert await old.fetchval("select 1") == 1


async def test_a_fence_holds_up_no_heartbeat_and_no_pause(account, engine):
    writer, core = await engine(), await engine()
    await install(core, 1)

    async with writer.transaction():
        await writer.execute(FENCE, 1)
        async with asyncio.timeout(2):
            await core.execute("select jobs_internal.heartbeat(1)")
            await account.execute("update jobs_internal.instance set paused = true")

    assert (await core.fetchrow("select * from jobs_internal.heartbeat(1)"))["paused"] is True


async def test_a_fence_writes_nothing(engine):
    """So that the commit of whoever only looks waits for no disk."""
    core = await engine()
    await install(core, 1)

    async with core.transaction():
        await core.execute(FENCE, 1)
        assert await core.fetchval("select pg_current_xact_id_if_assigned()") is None


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_fence_must_see_what_is_committed(engine, isolation):
    core = await engine()
    await install(core, 1)

    with pytest.raises(asyncpg.FeatureNotSupportedError):
        async with core.transaction(isolation=isolation):
            await core.execute(FENCE, 1)


async def test_whoever_changes_the_epoch_waits_for_what_is_behind_a_fence(account, engine):
    """Older releases know nothing of the lock: the table itself sees to it."""
    writer, other = await engine(), await account.connect("root")
    await install(writer, 1)
    await other.execute("set lock_timeout = '100ms'")
    change = "update jobs_internal.instance set epoch = 2"

    async with writer.transaction():
        await writer.execute(FENCE, 1)
        with pytest.raises(asyncpg.LockNotAvailableError):
            await other.execute(change)
    async with other.transaction():
        await other.execute(change)
        await writer.execute("set lock_timeout = '100ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await writer.execute(FENCE, 1)

    with pytest.raises(asyncpg.PostgresError) as caught:
        await writer.execute(FENCE, 1)
    assert caught.value.sqlstate == "MU001"
    await other.close()


async def test_one_that_comes_too_late_disturbs_no_writer(engine):
    writer, late = await engine(), await engine()
    await install(writer, 2)

    async with writer.transaction():
        await writer.execute(FENCE, 2)
        async with asyncio.timeout(2):
            assert await install(late, 1) is False
        await asyncio.sleep(0.3)
    assert await writer.fetchval("select 1") == 1


async def test_sessions_of_others_are_not_ended(agent, account, engine):
    """A lock of somebody who is no engine is waited for and told."""
    stranger = await account.connect("root")
    transaction = stranger.transaction()
    await transaction.start()
    await stranger.execute("select from jobs_internal.instance for key share")

    with pytest.raises(asyncpg.LockNotAvailableError):
        await install(await engine(), 1)

    await transaction.commit()
    await stranger.close()


async def test_hosts_outlive_the_engine_and_are_adopted(agent, account, engine):
    core, host = await engine(), uuid4()
    await install(core, 1)
    await core.execute(REGISTER, host, 1)
    await core.execute(REGISTER, host, 1)
    beat = "select * from jobs_internal.host_heartbeat($1, 3)"
    await install(core, 2)
    before = await core.fetchrow(beat, host)

    adopted = await core.fetch("select * from jobs_internal.adopt_hosts(2, 40)")
    after = await core.fetchrow(beat, host)

    assert (before["adopted_epoch"], before["current_epoch"], before["slots"]) == (1, 2, 10)
    assert [(row["host_id"], row["slots"]) for row in adopted] == [(host, 40)]
    assert (after["adopted_epoch"], after["slots"]) == (2, 40)
    draining = await agent.run(account, Drain())
    assert (draining.draining, draining.running) == (True, 3)
    assert (await agent.run(account, ReadEpoch())).drained is False
    await core.execute("select jobs_internal.end_host($1)", host)
    read = await agent.run(account, ReadEpoch())
    assert (read.drained, read.hosts) == (True, ())
    with pytest.raises(asyncpg.PostgresError) as caught:
        await core.execute(beat, host)
    assert caught.value.sqlstate == "MU004"


async def test_hosts_that_are_adopted_already_are_seen_and_not_written(engine):
    """So that looking at them each second costs nothing while nothing changes."""
    core, hosts = await engine(), [uuid4(), uuid4()]
    await install(core, 1)
    for host in hosts:
        await core.execute(REGISTER, host, 1)
    adopt = "select host_id, slots, state from jobs_internal.adopt_hosts(1, $1) order by host_id"

    changed = await core.fetch(adopt, 40)
    async with core.transaction():
        again = await core.fetch(adopt, 40)
        wrote = await core.fetchval("select pg_current_xact_id_if_assigned()")
    await core.execute(REGISTER, hosts[0], 1)  # with ten slots
    async with core.transaction():
        another = await core.fetch(adopt, 40)
        wrote_one = await core.fetchval("select pg_current_xact_id_if_assigned()")

    assert changed == again == another == [(host, 40, "live") for host in sorted(hosts)]
    assert (wrote, wrote_one is None) == (None, False)


async def test_nobody_takes_charge_of_what_was_let_go(agent, account, engine):
    connection = await engine()
    await install(connection, 1)
    await account.execute("update jobs_internal.instance set released_at = now()")

    assert await install(connection, 2) is False
    with pytest.raises(asyncpg.PostgresError):
        await connection.execute(FENCE, 1)


async def waits_for(account, table: str) -> None:
    """Until somebody stands before the lock of this table."""
    waiting = (
        "select exists (select from pg_locks where not granted and relation = to_regclass($1)"
        " and database = (select oid from pg_database where datname = current_database()))"
    )

    async def found() -> bool:
        return (await account.fetch(waiting, f"jobs_internal.{table}"))[0][0]

    await until(found, 4.0)


async def test_letting_go_waits_for_what_is_behind_a_fence(agent, account, engine):
    writer, host = await engine(), uuid4()
    await install(writer, 1)
    await writer.execute(REGISTER, host, 1)

    async with writer.transaction():
        await writer.execute(FENCE, 1)
        removing = asyncio.create_task(agent.run(account, RemoveSchema()))
        await waits_for(account, "instance")
        await writer.execute("select jobs_internal.host_heartbeat($1, 3)", host)
    removed = await removing

    assert removed.schema_kept is True
    rows = await account.fetch("select state, running from jobs_internal.host")
    assert rows == [("gone", 0)]
    (released,) = await account.fetch("select released_at from jobs_internal.instance")
    assert released[0] is not None


async def test_nothing_is_written_behind_who_lets_go(agent, account, engine):
    writer, reader = await engine(), await account.connect("root")
    await install(writer, 1)
    async with reader.transaction():
        await reader.execute("lock table jobs_internal.account_key in access share mode")
        removing = asyncio.create_task(agent.run(account, RemoveSchema()))
        await waits_for(account, "account_key")  # what was the engine's is already ended
        writing = asyncio.create_task(writer.execute(REGISTER, uuid4(), 1))
        waiting = asyncio.create_task(waits_for(account, "instance"))
        await asyncio.wait({writing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    await reader.close()

    assert (await removing).schema_kept is True
    with pytest.raises(asyncpg.PostgresError):
        await writing
    assert await account.fetch("select * from jobs_internal.host") == []
