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
from tests.support.fleet import Fleet, fleet
from tests.support.launching import until

pytestmark = pytest.mark.newest

EFFECT = "insert into effect default values"


@pytest.fixture
async def here(settings, db, targets, tmp_path):
    async with fleet(settings, db, targets, tmp_path, databases=1) as made:
        await made.query(0, "create table effect (id serial)")
        yield made


@pytest.fixture
def readied(monkeypatch) -> list[ReusableConnection | None]:
    """What each task of the hosts here was worked on with."""
    seen = []
    work = TaskRunner.run

    async def spied(self, task, ready=None):
        seen.append(ready)
        await work(self, task, ready)

    monkeypatch.setattr(TaskRunner, "run", spied)
    return seen


async def once(here: Fleet, name: str = "again") -> UUID:
    """A run to its end, and until the core and the host rest."""
    run = await here.start(name)
    await rests(here, run)
    return run


async def rests(here: Fleet, run: UUID) -> None:
    assert await here.ended(run) == "Succeeded"
    core, host = (one.living for one in here.alive)

    async def idle() -> bool:
        run_state = core.hosting.cluster_state.run_state
        return run_state is not None and not run_state.runs and not host._registry

    await until(idle)
    desks = host._pool._server_pools.values()
    await until(lambda: not any(desk.returning for desk in desks))


async def done(here: Fleet) -> int:
    return (await here.query(0, "select count(*) from effect"))[0][0]


async def told(here: Fleet, run: UUID) -> list[tuple[int, str]]:
    return [(task["attempt"], task["lifecycle"]) for task in await here.tasks(run)]


async def test_a_host_with_a_free_session_starts_a_task_where_it_is_taken(here: Fleet, readied):
    await here.job("again", EFFECT)

    first, second, third = [await once(here) for _ in range(3)]

    assert [ready is not None for ready in readied] == [False, True, True]
    assert [await told(here, run) for run in (first, second, third)] == [[(1, "Succeeded")]] * 3
    (task,) = await here.tasks(second)
    assert (task["backend_pid"], task["server_version"] // 10_000) == (
        (await here.tasks(first))[0]["backend_pid"],
        18,
    )
    assert await done(here) == 3


@pytest.fixture
def losing(monkeypatch) -> list[bool]:
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


async def test_a_start_whose_answer_was_lost_costs_no_attempt(here: Fleet, readied, losing):
    await here.job("again", EFFECT)
    await once(here)

    run = await once(here)

    assert losing == [True]
    assert await told(here, run) == [(1, "Canceled"), (2, "Succeeded")]
    (target,) = await here.targets_of(run)
    assert (target["attempts"], target["free_attempts"]) == (2, 1)
    assert await done(here) == 2


async def test_one_whose_start_was_lost_can_be_cancelled(here: Fleet, losing):
    await here.job("again", EFFECT)
    await once(here)

    run = await here.start("again")
    await until(lambda: losing)
    await here.root.execute("select jobs.sp_stop_job($1)", run)

    assert await here.ended(run) in {"Canceled", "Succeeded"}
    assert losing == [True]


async def test_an_outage_makes_nobody_do_again_what_is_done(here: Fleet, monkeypatch):
    """Its result is not recorded yet when the host takes anew."""
    await here.job("again", EFFECT)
    await once(here)
    _, host = here.alive
    value, told_at_last = ControlConnection.value, asyncio.Event()

    async def late(self, query, *args):
        if query == Q.report and args[4] is not None:
            host.living._connection.disconnect()
            host.living._tasks_notified.set()
            await told_at_last.wait()
        return await value(self, query, *args)

    monkeypatch.setattr(ControlConnection, "value", late)
    run = await here.start("again")
    await until(lambda: done_twice(here))
    await asyncio.sleep(0.3)  # it takes anew meanwhile
    told_at_last.set()

    assert await here.ended(run) == "Succeeded"
    assert await done(here) == 2


async def done_twice(here: Fleet) -> bool:
    return await done(here) == 2


async def test_a_host_is_not_ended_by_a_way_that_is_gone(here: Fleet, readied, monkeypatch):
    await here.job("again", EFFECT)
    await once(here)

    def gone(*_, **__):
        raise InvalidRequest("It can't be reached in this way.", code="TransactionModeNotPossible")

    monkeypatch.setattr(ConnectionPool, "lend_idle", gone)

    assert await told(here, await once(here)) == [(1, "Succeeded")]
    assert readied == [None, None]


async def test_a_host_that_leaves_ends_what_it_has_started(here: Fleet, readied):
    await here.job("again", EFFECT)
    await once(here)
    _, host = here.alive

    with failpoints.armed({"host.taken": host.stop.set}):
        run = await here.start("again")
        assert await here.ended(run) == "Succeeded"

    assert readied[-1] is not None
    assert await told(here, run) == [(1, "Succeeded")]
    await here.end(host)


async def test_a_session_that_was_lost_meanwhile_is_not_started_in(here: Fleet, readied):
    await here.job("again", EFFECT)
    first = await once(here)
    (task,) = await here.tasks(first)

    await here.query(0, "select pg_terminate_backend($1, 5000)", task["backend_pid"])
    second = await once(here)

    assert readied == [None, None]
    assert await told(here, second) == [(1, "Succeeded")]


async def test_a_session_that_is_kept_in_vain_can_be_used_by_others(here: Fleet, readied):
    await here.job("again", EFFECT)
    await here.job("another", EFFECT)
    first = await once(here)

    second = await once(here, "another")

    assert readied == [None, None]
    pids = {task["backend_pid"] for run in (first, second) for task in await here.tasks(run)}
    assert len(pids) == 1
