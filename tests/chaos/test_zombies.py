"""Real engines and hosts that are stopped in the middle of a transaction and go on after their time."""

import contextlib
import signal

import pytest

from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind, Reason
from tests.support.engine_fixture import Running, Workloads, start_workloads
from tests.support.launching import until

TRANSACTIONS = """
select wait_event_type, state, backend_xid::text as xid
  from pg_stat_activity
 where application_name = $1 and xact_start is not null
"""


@pytest.fixture
async def workloads(settings, db, targets, tmp_path):
    async with start_workloads(settings, db, targets, tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def locked(workloads: Workloads, table: str):
    """Whoever wants to write it waits, in the middle of its transaction."""
    connection = await workloads.account.connect("root")
    try:
        async with connection.transaction():
            await connection.execute(f"select from jobs_internal.{table} for update")
            yield
    finally:
        await connection.close()


async def stop_when_it_waits(workloads: Workloads, who: Running) -> None:
    async def waits() -> bool:
        return any(each["wait_event_type"] == "Lock" for each in await transactions(workloads, who))

    await until(waits)
    who.send(signal.SIGSTOP)


async def uncommitted(workloads: Workloads, who: Running) -> str:
    """The id of what the one that is stopped has written."""
    found: list[str] = []

    async def wrote() -> bool:
        for each in await transactions(workloads, who):
            if each["state"] == "idle in transaction" and each["xid"]:
                found.append(each["xid"])
        return bool(found)

    await until(wrote)
    return found[0]


async def transactions(workloads: Workloads, who: Running):
    name = f"muster-{who.workload.kind} {who.workload.id}"
    return await workloads.account.fetch(TRANSACTIONS, name)


async def fate(workloads: Workloads, xid: str) -> str:
    return (await workloads.account.fetch("select pg_xact_status($1::text::xid8)", xid))[0][0]


async def test_an_engine_stopped_inside_a_write_never_commits_it_under_a_newer_epoch(
    workloads: Workloads,
):
    old, host = await workloads.pair(epoch=1)
    async with locked(workloads, "instance"):  # its heartbeat
        await stop_when_it_waits(workloads, old)
    xid = await uncommitted(workloads, old)
    new = await workloads.engine(epoch=2)
    seen = await workloads.read()

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    assert await fate(workloads, xid) == "aborted"
    row = await workloads.row(old)
    assert (row.state, row.reason) == ("failure", Reason.REPORTED)
    assert row.message.startswith("Superseded")
    now = await workloads.read()
    assert (now.epoch, now.generation, now.workload_id) == (2, seen.generation, new.workload.id)
    assert [each.adopted_epoch for each in now.hosts] == [2]
    await workloads.until_reports(host, epoch=2)


@pytest.mark.slow
async def test_an_engine_stopped_while_it_takes_charge_was_never_in_charge(workloads: Workloads):
    first, host = await workloads.pair(epoch=1)
    first.send(signal.SIGKILL)
    async with locked(workloads, "host"):
        old = await workloads.start(Kind.ENGINE, epoch=2)
        await stop_when_it_waits(workloads, old)
    xid = await uncommitted(workloads, old)
    await workloads.engine(epoch=3)

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    assert await fate(workloads, xid) == "aborted"
    now = await workloads.read()
    assert (now.epoch, now.generation) == (3, 2)
    await workloads.until_reports(host, epoch=3)


@pytest.mark.slow
async def test_a_host_stopped_inside_a_write_keeps_no_engine_away_and_is_adopted(
    workloads: Workloads,
):
    first, host = await workloads.pair(epoch=1)
    async with locked(workloads, "host"):
        await stop_when_it_waits(workloads, host)
    xid = await uncommitted(workloads, host)
    first.send(signal.SIGKILL)
    engine = await workloads.engine(epoch=2)

    host.send(signal.SIGCONT)

    await workloads.until_reports(host, epoch=2)
    await workloads.until_reports(engine, hosts=[str(host.workload.id)])
    assert await fate(workloads, xid) == "aborted"
