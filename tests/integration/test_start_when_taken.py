"""A host that takes a task while a worker and a clean session are free starts it in the same statement."""

import asyncio
from uuid import UUID

import pytest

from engine.host.task_runner import TaskRunner, ReusableConnection
from engine.db.control_connection import ControlConnection
from engine.pool.pool import ConnectionPool
from engine.host.main import Q
from muster.core import failpoints
from muster.core.errors import InvalidRequest, Unavailable
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = pytest.mark.newest

EFFECT = "insert into effect default values"


@pytest.fixture
async def fleet(settings, db, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, databases=1) as made:
        await made.query(0, "create table effect (id serial)")
        yield made


@pytest.fixture
def connections_used(monkeypatch) -> list[ReusableConnection | None]:
    """What each task of the hosts here was worked on with."""
    seen = []
    work = TaskRunner.run

    async def spied(self, task, ready=None):
        seen.append(ready)
        await work(self, task, ready)

    monkeypatch.setattr(TaskRunner, "run", spied)
    return seen


async def once(fleet: Fleet, name: str = "again") -> UUID:
    """A run to its end, and until the core and the host rest."""
    run = await fleet.start(name)
    await rests(fleet, run)
    return run


async def rests(fleet: Fleet, run: UUID) -> None:
    assert await fleet.ended(run) == "Succeeded"
    core, host = (one.living for one in fleet.alive)

    async def idle() -> bool:
        run_state = core.hosting.cluster_state.run_state
        return run_state is not None and not run_state.runs and not host._registry

    await until(idle)
    desks = host._pool._server_pools.values()
    await until(lambda: not any(desk.returning for desk in desks))


async def done(fleet: Fleet) -> int:
    return (await fleet.query(0, "select count(*) from effect"))[0][0]


async def told(fleet: Fleet, run: UUID) -> list[tuple[int, str]]:
    return [(task["attempt"], task["lifecycle"]) for task in await fleet.tasks(run)]


async def test_a_host_with_a_free_session_starts_a_task_where_it_is_taken(
    fleet: Fleet, connections_used
):
    await fleet.job("again", EFFECT)

    first, second, third = [await once(fleet) for _ in range(3)]

    assert [ready is not None for ready in connections_used] == [False, True, True]
    assert [await told(fleet, run) for run in (first, second, third)] == [[(1, "Succeeded")]] * 3
    (task,) = await fleet.tasks(second)
    assert (task["backend_pid"], task["server_version"] // 10_000) == (
        (await fleet.tasks(first))[0]["backend_pid"],
        18,
    )
    assert await done(fleet) == 3


@pytest.fixture
def lost_reply(monkeypatch) -> list[bool]:
    """The answer to the next taking that starts something is lost: whether it did, and then nothing more."""
    fetch, lost = ControlConnection.fetch, []

    async def lose(self, query, *args, **more):
        rows = await fetch(self, query, *args, **more)
        if query == Q.take_and_start and rows and not lost:
            lost.append(rows[0]["begun"])
            raise Unavailable("it was cut off", code="ControlDatabaseUnavailable")
        return rows

    monkeypatch.setattr(ControlConnection, "fetch", lose)
    return lost


async def test_a_start_whose_answer_was_lost_costs_no_attempt(
    fleet: Fleet, connections_used, lost_reply
):
    await fleet.job("again", EFFECT)
    await once(fleet)

    run = await once(fleet)

    assert lost_reply == [True]
    assert await told(fleet, run) == [(1, "Canceled"), (2, "Succeeded")]
    (target,) = await fleet.targets_of(run)
    assert (target["attempts"], target["free_attempts"]) == (2, 1)
    assert await done(fleet) == 2


async def test_one_whose_start_was_lost_can_be_cancelled(fleet: Fleet, lost_reply):
    await fleet.job("again", EFFECT)
    await once(fleet)

    run = await fleet.start("again")
    await until(lambda: lost_reply)
    await fleet.root.execute("select jobs.sp_stop_job($1)", run)

    assert await fleet.ended(run) in {"Canceled", "Succeeded"}
    assert lost_reply == [True]


async def test_an_outage_makes_nobody_do_again_what_is_done(fleet: Fleet, monkeypatch):
    """Its result is not recorded yet when the host takes anew."""
    await fleet.job("again", EFFECT)
    await once(fleet)
    _, host = fleet.alive
    value, told_at_last = ControlConnection.value, asyncio.Event()

    async def late(self, query, *args):
        if query == Q.report and args[4] is not None:
            host.living._connection.disconnect()
            host.living._tasks_notified.set()
            await told_at_last.wait()
        return await value(self, query, *args)

    monkeypatch.setattr(ControlConnection, "value", late)
    run = await fleet.start("again")
    await until(lambda: done_twice(fleet))
    await asyncio.sleep(0.3)  # it takes anew meanwhile
    told_at_last.set()

    assert await fleet.ended(run) == "Succeeded"
    assert await done(fleet) == 2


async def done_twice(fleet: Fleet) -> bool:
    return await done(fleet) == 2


async def test_a_host_is_not_ended_by_a_way_that_is_gone(
    fleet: Fleet, connections_used, monkeypatch
):
    await fleet.job("again", EFFECT)
    await once(fleet)

    def gone(*_, **__):
        raise InvalidRequest("It can't be reached in this way.", code="TransactionModeNotPossible")

    monkeypatch.setattr(ConnectionPool, "lend_idle", gone)

    assert await told(fleet, await once(fleet)) == [(1, "Succeeded")]
    assert connections_used == [None, None]


async def test_a_host_that_leaves_ends_what_it_has_started(fleet: Fleet, connections_used):
    await fleet.job("again", EFFECT)
    await once(fleet)
    _, host = fleet.alive

    with failpoints.armed({"host.taken": host.stop.set}):
        run = await fleet.start("again")
        assert await fleet.ended(run) == "Succeeded"

    assert connections_used[-1] is not None
    assert await told(fleet, run) == [(1, "Succeeded")]
    await fleet.end(host)


async def test_a_session_that_was_lost_meanwhile_is_not_started_in(fleet: Fleet, connections_used):
    await fleet.job("again", EFFECT)
    first = await once(fleet)
    (task,) = await fleet.tasks(first)

    await fleet.query(0, "select pg_terminate_backend($1, 5000)", task["backend_pid"])
    second = await once(fleet)

    assert connections_used == [None, None]
    assert await told(fleet, second) == [(1, "Succeeded")]


async def test_a_session_that_is_kept_in_vain_can_be_used_by_others(fleet: Fleet, connections_used):
    await fleet.job("again", EFFECT)
    await fleet.job("another", EFFECT)
    first = await once(fleet)

    second = await once(fleet, "another")

    assert connections_used == [None, None]
    pids = {task["backend_pid"] for run in (first, second) for task in await fleet.tasks(run)}
    assert len(pids) == 1
