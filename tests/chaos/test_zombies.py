"""Real engines and hosts that are stopped in the middle of a transaction and go on after their time."""

import contextlib
import signal

import pytest

from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind, Reason
from tests.support.engine_fixture import Running, World, world
from tests.support.launching import until

TRANSACTIONS = """
select wait_event_type, state, backend_xid::text as xid
  from pg_stat_activity
 where application_name = $1 and xact_start is not null
"""


@pytest.fixture
async def here(settings, db, targets, tmp_path):
    async with world(settings, db, targets, tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def locked(here: World, table: str):
    """Whoever wants to write it waits, in the middle of its transaction."""
    connection = await here.account.connect("root")
    try:
        async with connection.transaction():
            await connection.execute(f"select from jobs_internal.{table} for update")
            yield
    finally:
        await connection.close()


async def stop_when_it_waits(here: World, who: Running) -> None:
    async def waits() -> bool:
        return any(each["wait_event_type"] == "Lock" for each in await transactions(here, who))

    await until(waits)
    who.send(signal.SIGSTOP)


async def uncommitted(here: World, who: Running) -> str:
    """The id of what the one that is stopped has written."""
    found: list[str] = []

    async def wrote() -> bool:
        for each in await transactions(here, who):
            if each["state"] == "idle in transaction" and each["xid"]:
                found.append(each["xid"])
        return bool(found)

    await until(wrote)
    return found[0]


async def transactions(here: World, who: Running):
    name = f"muster-{who.workload.kind} {who.workload.id}"
    return await here.account.fetch(TRANSACTIONS, name)


async def fate(here: World, xid: str) -> str:
    return (await here.account.fetch("select pg_xact_status($1::text::xid8)", xid))[0][0]


async def test_an_engine_stopped_inside_a_write_never_commits_it_under_a_newer_epoch(here: World):
    old, host = await here.pair(epoch=1)
    async with locked(here, "instance"):  # its heartbeat
        await stop_when_it_waits(here, old)
    xid = await uncommitted(here, old)
    new = await here.engine(epoch=2)
    seen = await here.read()

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    assert await fate(here, xid) == "aborted"
    row = await here.row(old)
    assert (row.state, row.reason) == ("failure", Reason.REPORTED)
    assert row.message.startswith("Superseded")
    now = await here.read()
    assert (now.epoch, now.generation, now.workload_id) == (2, seen.generation, new.workload.id)
    assert [each.adopted_epoch for each in now.hosts] == [2]
    await here.until_reports(host, epoch=2)


@pytest.mark.slow
async def test_an_engine_stopped_while_it_takes_charge_was_never_in_charge(here: World):
    first, host = await here.pair(epoch=1)
    first.send(signal.SIGKILL)
    async with locked(here, "host"):
        old = await here.start(Kind.ENGINE, epoch=2)
        await stop_when_it_waits(here, old)
    xid = await uncommitted(here, old)
    await here.engine(epoch=3)

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    assert await fate(here, xid) == "aborted"
    now = await here.read()
    assert (now.epoch, now.generation) == (3, 2)
    await here.until_reports(host, epoch=3)


@pytest.mark.slow
async def test_a_host_stopped_inside_a_write_keeps_no_engine_away_and_is_adopted(here: World):
    first, host = await here.pair(epoch=1)
    async with locked(here, "host"):
        await stop_when_it_waits(here, host)
    xid = await uncommitted(here, host)
    first.send(signal.SIGKILL)
    engine = await here.engine(epoch=2)

    host.send(signal.SIGCONT)

    await here.until_reports(host, epoch=2)
    await here.until_reports(engine, hosts=[str(host.workload.id)])
    assert await fate(here, xid) == "aborted"
