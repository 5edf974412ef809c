"""Every place on the way of an event to a receiver × kill -9, and a crash of the control database: none is lost or doubled.

One seeded cell in `make deep`; MUSTER_TEST_CELLS=all (`make chaos`) runs every one.
"""

import asyncio
import contextlib
import os
import random
import signal
from uuid import UUID

import pytest

from fsm.launch.protocol import Kind
from muster.core.failpoints import DECLARED
from tests.chaos.run_invariants import EFFECT, PROBE, violations
from tests.support import postgres as server
from tests.support.engine_processes import EngineProcesses, start_processes
from tests.support.fleet import plane
from tests.support.launching import until
from tests.support.webhook_receiver import Receiver, add_webhook, deliveries, receiving, settled

pytestmark = [pytest.mark.newest, pytest.mark.deep]
together = pytest.mark.asyncio(loop_scope="module")

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
EVERY = os.environ.get("MUSTER_TEST_CELLS") == "all"
POINTS = sorted(point for point in DECLARED if point.startswith("events."))
KILLED, CONTROL = "is killed", "while the control database crashes"
CELLS = [(point, fault) for fault in (KILLED, CONTROL) for point in POINTS]
CHOSEN = CELLS if EVERY else random.Random(SEED).sample(CELLS[: len(POINTS)], 1)


@pytest.fixture(scope="module")
def servers():
    """Of the control database and of the fleet: the first one is to crash."""
    with (
        server.running(migrated=False, durable=True) as control,
        server.running(migrated=False) as fleet,
    ):
        yield control, fleet


@contextlib.asynccontextmanager
async def jobs(postgres, servers, folder):
    """One job succeeds, the other one fails."""
    async with (
        plane(postgres) as (settings, db),
        start_processes(settings, db, *servers, folder) as processes,
    ):
        fleet = processes.fleet
        for name in fleet.databases:
            await fleet.query(name, PROBE)
        await fleet.job("works", EFFECT)
        await fleet.job("fails", f"{EFFECT}; select 1/0", retry_attempts=0)
        yield processes


@pytest.fixture(scope="module")
def make_processes(postgres, servers, tmp_path_factory):
    return lambda: jobs(postgres, servers, tmp_path_factory.mktemp("processes"))


@together
@pytest.mark.parametrize(("point", "fault"), CHOSEN)
async def test_an_event_reaches_its_receiver_whatever_happens(
    point, fault, processes: EngineProcesses, servers
):
    fleet, ends = processes.fleet, len(processes.ends)
    async with receiving() as receiver:
        await fleet.root.execute("delete from jobs_internal.webhook")
        await add_webhook(fleet, "ops", receiver.url)
        processes.arm({point: "kill times:1" if fault == KILLED else "sleep:1 times:1"})

        async with processes.kept():
            runs = [await fleet.start(name) for name in ("works", "fails")]
            if fault == CONTROL:
                await until(lambda: processes.hits().get(point))
                await asyncio.to_thread(servers[0].machine.crash)
                await servers[0].machine.revive()
                await fleet.renew()
            outcomes = [await fleet.ended(run, 60) for run in runs]
            await until(lambda: settled(fleet))

        assert processes.hits()[point]
        processes.arm({})
        assert outcomes == ["Succeeded", "Failed"]
        await check(processes, receiver, runs)
        killed = [(Kind.ENGINE, -signal.SIGKILL)] if fault == KILLED else []
        assert processes.ends[ends:] == killed


async def check(processes: EngineProcesses, receiver: Receiver, runs: list[UUID]) -> None:
    rows = await deliveries(processes.fleet, "ops")
    assert sorted(row["jobExecutionId"] for row in rows) == sorted(map(str, runs))
    assert {row["status"] for row in rows} == {"Delivered"}
    ids = [request.event_id for request in receiver.requests]
    assert set(ids) == {row["eventId"] for row in rows}, "the receiver knows each event by its id"
    assert len(ids) <= 2 * len(rows), "only what was under way was sent again"
    assert await violations(processes.fleet) == [], processes.log()


def test_every_place_is_a_cell():
    assert len(POINTS) == 5
