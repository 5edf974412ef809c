"""A run like the last one, on a fleet that rests: it begins and starts with fewer words, and only if all is as it was."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from engine.core.runs import run_lifecycle
from engine.host.task_runner import Errands, Ready
from engine.db.control_connection import Line
from engine.core.runs.run_lifecycle import Progress
from engine.pool.pool import Sessions
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
def readied(monkeypatch) -> list[Ready | None]:
    """What each task of the hosts here was worked on with."""
    seen = []
    work = Errands.work

    async def spied(self, task, ready=None):
        seen.append(ready)
        await work(self, task, ready)

    monkeypatch.setattr(Errands, "work", spied)
    return seen


@pytest.fixture
def expected(monkeypatch) -> list[bool]:
    """Whether a run was begun as expected, each time that one was."""
    seen = []
    write = Progress.write_encore

    async def spied(self, step, batch):
        news = await write(self, step, batch)
        seen.append(news is None)
        return news

    monkeypatch.setattr(Progress, "write_encore", spied)
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
        floor = core.hosting.view.floor
        return floor is not None and not floor.runs and not host._hand

    await until(idle)
    desks = host._sessions._desks.values()
    await until(lambda: not any(desk.returning for desk in desks))


async def snapshot(here: Fleet, run: UUID) -> UUID:
    return (await here.steps(run))[0]["snapshot_id"]


async def done(here: Fleet) -> int:
    return (await here.query(0, "select count(*) from effect"))[0][0]


async def told(here: Fleet, run: UUID) -> list[tuple[int, str]]:
    return [(task["attempt"], task["lifecycle"]) for task in await here.tasks(run)]


async def test_it_has_the_targets_of_the_last_one_and_starts_where_it_is_taken(
    here: Fleet, readied, expected
):
    await here.job("again", EFFECT)

    first, second, third = [await once(here) for _ in range(3)]

    assert expected == [True, True]
    assert [ready is not None for ready in readied] == [False, True, True]
    assert {await snapshot(here, run) for run in (first, second, third)} == {
        await snapshot(here, first)
    }
    assert [await told(here, run) for run in (first, second, third)] == [[(1, "Succeeded")]] * 3
    (task,) = await here.tasks(second)
    assert (task["backend_pid"], task["server_version"] // 10_000) == (
        (await here.tasks(first))[0]["backend_pid"],
        18,
    )
    assert await done(here) == 3


async def test_of_a_job_of_two_steps_the_first_is_expected(here: Fleet, expected):
    await here.job("again", EFFECT, EFFECT)

    runs = [await once(here) for _ in range(2)]

    assert expected == [True]
    assert [await here.lifecycles(run) for run in runs] == [{"Succeeded": 2}] * 2
    assert await done(here) == 4


CHANGES = {
    "the job has another version": (
        "select jobs.sp_update_jobstep('again', step_name => 'step1', command => 'select 2')"
    ),
    "the group was touched": (
        "select jobs_internal.touch_group_v1(target_group_id) from jobs_internal.target_group"
    ),
    "the directory is another": (
        "update jobs_internal.directory_revision set revision = revision + 1"
    ),
    "the last run was forgotten": "select jobs.sp_purge_jobhistory('again')",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_where_anything_is_another_it_is_planned_anew(here: Fleet, expected, change):
    await here.job("again", "select 1")
    first = await once(here)
    (before,) = await here.root.fetch("select snapshot_id from jobs_internal.snapshot")

    await here.root.execute(CHANGES[change])
    second = await once(here)

    assert expected == [False]
    assert await snapshot(here, second) != before["snapshot_id"]
    assert first != second


LOCK = "select pg_advisory_xact_lock{}(hashtextextended('muster snapshots', 0))"


async def test_while_snapshots_are_forgotten_it_has_one_of_its_own(here: Fleet, expected):
    await here.job("again", "select 1")
    await once(here)
    other = await here.account.connect("root")

    async with other.transaction():
        await other.execute(LOCK.format(""))
        await once(here)
    await other.close()

    assert expected == [False]
    assert await here.root.fetchval("select count(*) from jobs_internal.snapshot") == 2


@pytest.mark.parametrize(
    "forgets",
    [
        "select jobs.sp_purge_jobhistory('again')",
        "select jobs_internal.prune_runs_v1(-1)",
        "select jobs_internal.forget_leftovers_v1(now())",
    ],
)
async def test_while_one_begins_with_it_no_snapshot_is_forgotten(here: Fleet, forgets: str):
    await here.job("again", "select 1")
    await once(here)
    other = await here.account.connect("root")
    await here.root.execute("set lock_timeout = '200ms'")

    async with other.transaction():
        await other.execute(LOCK.format("_shared"))
        with pytest.raises(asyncpg.LockNotAvailableError):
            await here.root.execute(forgets)
    await other.close()
    await here.root.execute(forgets)


async def test_history_is_forgotten_by_who_sees_what_began_meanwhile(here: Fleet):
    await here.job("again", "select 1")
    await once(here)

    with pytest.raises(asyncpg.FeatureNotSupportedError, match="read committed"):
        async with here.root.transaction(isolation="repeatable_read"):
            await here.root.execute("select jobs.sp_purge_jobhistory('again')")

    assert await here.root.fetchval("select count(*) from jobs_internal.snapshot") == 1


async def test_targets_that_came_meanwhile_are_visited(here: Fleet):
    await here.job("again", "select 1")
    await once(here)

    await here.call(
        "sp_add_target_group_member", target_group_name="everything", target_type="SqlDatabase",
        server_name="fleet", database_name="postgres",
    )  # fmt: skip

    assert await here.lifecycles(await once(here)) == {"Succeeded": 2}


async def test_what_servers_must_be_asked_for_is_not_expected(here: Fleet, expected):
    await here.schema_group()
    await here.job("again", "select 1", group="schemas")

    first, second = [await once(here) for _ in range(2)]

    assert expected == []
    assert await snapshot(here, first) != await snapshot(here, second)


async def test_two_at_once_are_no_encore(here: Fleet, expected):
    await here.job("again", EFFECT)
    await once(here)

    async with here.root.transaction():
        runs = [await here.start("again") for _ in range(2)]

    assert sorted([await here.ended(run) for run in runs]) == ["Skipped", "Succeeded"]
    assert expected == [False]
    assert await done(here) == 2


async def test_one_that_was_stopped_before_anybody_saw_it_does_not_begin(here: Fleet, expected):
    await here.job("again", EFFECT)
    await once(here)

    async with here.root.transaction():
        run = await here.start("again")
        await here.root.execute("select jobs.sp_stop_job($1)", run)

    assert await here.ended(run) == "Canceled"
    await until(lambda: expected)
    assert expected == [False]
    assert await done(here) == 1


async def test_one_that_meets_a_pause_waits_for_its_end(here: Fleet, expected):
    await here.job("again", EFFECT)
    await once(here)

    async with here.root.transaction():
        run = await here.start("again")
        await here.root.execute("update jobs_internal.instance set paused = true")
    await until(lambda: expected)
    assert (expected, await here.lifecycle(run)) == ([True], "Created")
    await here.root.execute("update jobs_internal.instance set paused = false")

    assert await here.ended(run) == "Succeeded"
    assert await done(here) == 2


async def test_an_expectation_that_is_refused_costs_no_run(here: Fleet, expected, monkeypatch):
    await here.job("again", EFFECT)
    await once(here)
    text = run_lifecycle.Q.news_or_encore.replace("select e.job", "select 1/0, e.job")
    monkeypatch.setitem(run_lifecycle.Q._texts, "news_or_encore", text)

    await once(here)
    await once(here)

    assert expected == [False, False]
    assert await done(here) == 3


@pytest.fixture
def losing(monkeypatch) -> list[bool]:
    """The answer to the next taking that starts something is lost: whether it did, and then nothing more."""
    fetch, lost = Line.fetch, []

    async def lose(self, query, *args, **more):
        rows = await fetch(self, query, *args, **more)
        if query == Q.take_and_start and rows and not lost:
            lost.append(rows[0]["begun"])
            raise Unavailable("it was cut off", code="ControlDatabaseUnavailable")
        return rows

    monkeypatch.setattr(Line, "fetch", lose)
    return lost


async def test_a_start_whose_answer_was_lost_costs_no_attempt(here: Fleet, readied, losing):
    await here.job("again", EFFECT)
    await once(here)

    run = await once(here)

    assert losing == [True]
    assert await told(here, run) == [(1, "Canceled"), (2, "Succeeded")]
    (target,) = await here.targets_of(run)
    assert (target["attempts"], target["uncounted"]) == (2, 1)
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
    value, told_at_last = Line.value, asyncio.Event()

    async def late(self, query, *args):
        if query == Q.report and args[4] is not None:
            host.living._line.hang_up()
            host.living._rung.set()
            await told_at_last.wait()
        return await value(self, query, *args)

    monkeypatch.setattr(Line, "value", late)
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

    monkeypatch.setattr(Sessions, "lend_idle", gone)

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
