"""A target that crashes between the intent to commit and COMMIT: its ids are given away once more, and nobody is fooled."""

import contextlib

import asyncpg
import pytest

from engine.access.commit_status import status_of
from muster.core import failpoints
from tests.chaos.run_invariants import EFFECT, PROBE, violations
from tests.support import postgres as server
from tests.support.control_db import installed
from tests.support.fleet import Fleet, start_fleet

pytestmark = [pytest.mark.newest, pytest.mark.slow, pytest.mark.targets]


@pytest.fixture(scope="module")
def async_commit_server():
    """A server that writes its log only when somebody commits."""
    lazy = {"wal_writer_delay": "10s", "wal_level": "minimal", "max_wal_senders": "0"}
    with server.running(migrated=False, durable=True, binaries=server.THEIRS, **lazy) as own:
        yield own


@pytest.fixture
async def fleet(settings, db, control, async_commit_server, tmp_path):
    account = await installed(settings, db, control)
    async with start_fleet(
        settings, db, async_commit_server, tmp_path, databases=1, account=account
    ) as made:  # fmt: skip
        await made.query(0, PROBE)
        await made.query(0, "create table others (n int)")
        yield made


@contextlib.contextmanager
def crashing(fleet: Fleet, *, writes: int):
    """At the first intent; then others write so much before anybody asks."""
    hit = []

    async def crash() -> None:
        if hit:
            return
        hit.append(True)
        fleet.targets.machine.crash()
        await fleet.targets.machine.revive()
        for _ in range(writes):
            await fleet.query(0, "insert into others values (1)")

    with failpoints.armed({"host.intended": crash}):
        yield
    assert hit


async def test_an_id_that_others_use_now_is_not_taken_for_ours(fleet: Fleet):
    with crashing(fleet, writes=20):
        run = await fleet.run(EFFECT)

    (target,) = await fleet.targets_of(run)
    (task,) = await fleet.tasks(run)
    assert await status(fleet, task["xact_id"].partition("@")[0]) == "committed", "by somebody else"
    assert (target["lifecycle"], target["end_reason"]) == ("Failed", "OutcomeUnknown")
    connection = await asyncpg.connect(fleet.targets.url(fleet.databases[0], fleet.targets.root))
    try:
        assert await status_of(connection, task["xact_id"]) == "unknown"
    finally:
        await connection.close()
    assert await violations(fleet) == []


async def test_a_guard_makes_sure_of_it(fleet: Fleet):
    with crashing(fleet, writes=20):
        run = await fleet.run(EFFECT, options={"guard": True})

    assert [(t["attempt"], t["lifecycle"]) for t in await fleet.tasks(run)] == [
        (1, "Failed"),
        (2, "Succeeded"),
    ]
    assert await violations(fleet) == []


async def test_an_id_that_nobody_has_yet_was_not_committed(fleet: Fleet):
    with crashing(fleet, writes=0):
        run = await fleet.run(EFFECT)

    first, second = await fleet.tasks(run)
    assert (first["lifecycle"], first["end_reason"]) == ("Failed", "ConnectionLost")
    assert second["lifecycle"] == "Succeeded"
    assert await violations(fleet) == []


async def status(fleet: Fleet, xid: str) -> str:
    return (await fleet.query(0, "select txid_status($1::text::bigint)", xid))[0][0]
