"""Hosts that are lost while several tasks go to a database in one breath: all of them are done in the end."""

import asyncio
import contextlib
import signal
from collections import Counter
from uuid import UUID, uuid4

import asyncpg
import pytest
import pytest_asyncio

from fsm.launch.protocol import Kind
from tests.chaos.run_invariants import PROBE, violations
from tests.chaos.test_lost_hosts import ends_first, gone
from tests.support.engine_processes import Crew, crew
from tests.support.engine_fixture import Running
from tests.support.fleet import Shared, plane
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]
together = pytest.mark.asyncio(loop_scope="module")

MANY = 120
SCHEMAS = f"""
do $$ begin
    for number in 1..{MANY} loop
        execute format('create schema t%s', lpad(number::text, 3, '0'));
    end loop;
end $$
"""
NAPS = "select pg_sleep(case when $(attempt) = 1 then 0.06 else 0 end)"


@contextlib.asynccontextmanager
async def narrow(postgres, control, targets, folder):
    """Room for two sessions, so that most of the tasks follow others."""
    async with (
        plane(postgres) as (settings, db),
        crew(settings, db, control, targets, folder, databases=1, max_connections=2) as here,
    ):
        fleet = here.fleet
        await fleet.query(0, PROBE)
        await fleet.query(0, SCHEMAS)
        await fleet.call("sp_add_target_group", target_group_name="schemas")
        await fleet.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=fleet.databases[0], schema_pattern="t%",
        )  # fmt: skip
        yield here


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(postgres, control, targets, tmp_path_factory):
    make = tmp_path_factory.mktemp
    made = Shared(lambda: narrow(postgres, control, targets, make("batches")), Crew.log)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared, request):
    async with shared.lent(lambda: request.session.testsfailed) as made:
        made.arm({})
        made.ends.clear()
        yield made


async def begun(here: Crew) -> UUID:
    """A run whose tasks ride."""
    name = f"together {uuid4()}"
    options = {"settings": {"access": "readOnly"}}
    await here.fleet.job(name, NAPS, group="schemas", options=options)
    run = await here.fleet.start(name)

    async def several() -> bool:
        return bool(await batch_tasks_of(here, run))

    await until(several)
    return run


async def batch_tasks_of(here: Crew, run: UUID) -> list[asyncpg.Record]:
    """Its tasks that share a session with others now."""
    live = [task for task in await here.fleet.tasks(run) if task["lifecycle"] == "InProgress"]
    shared = Counter(task["backend_pid"] for task in live)
    return [task for task in live if shared[task["backend_pid"]] > 1]


async def frozen(here: Crew) -> tuple[UUID, list[asyncpg.Record], Running]:
    """A run, and what rides in it while its host stands still."""
    run = await begun(here)
    async with asyncio.timeout(10):
        while True:
            victim = here.host_of((await here.fleet.tasks(run))[0])
            victim.send(signal.SIGSTOP)
            await asyncio.sleep(0.3)  # what it had said is written by then
            if batch_tasks := await batch_tasks_of(here, run):
                return run, batch_tasks, victim
            victim.send(signal.SIGCONT)
            await asyncio.sleep(0.03)


async def lost(here: Crew, run: UUID) -> set[int]:
    """Ordinals of the attempts that were lost with their host, each of which was the first of its target."""
    tasks = [t for t in await here.fleet.tasks(run) if t["end_reason"] == "HostLost"]
    assert {task["attempt"] for task in tasks} == {1}
    return {task["ordinal"] for task in tasks}


def ordinals(tasks: list[asyncpg.Record]) -> set[int]:
    return {task["ordinal"] for task in tasks}


@together
@pytest.mark.slow
async def test_what_a_killed_host_had_under_way_ends_at_once_and_is_done_again(here: Crew):
    run, batch_tasks, victim = await frozen(here)

    async with here.kept():
        victim.send(signal.SIGKILL)
        await gone(here, batch_tasks, within=5)
        ended = await here.fleet.ended(run)

    assert (ended, here.ends) == ("Succeeded", [(Kind.HOST, -signal.SIGKILL)])
    assert await here.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert ordinals(batch_tasks) <= await lost(here, run)
    assert await violations(here.fleet) == []


@together
async def test_what_a_stopped_host_had_under_way_is_ended_before_another_begins(here: Crew):
    run, batch_tasks, victim = await frozen(here)

    met, judges = await ends_first(here, run, batch_tasks)
    await here.disowned(victim)
    victim.send(signal.SIGCONT)
    ended = await here.fleet.ended(run)

    assert (met, ended) == (set(), "Succeeded")
    assert judges <= 1, "a server spares us one session for that"
    await here.world.until(victim, lambda told: told["running"] == 0, "over")
    assert await here.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert ordinals(batch_tasks) <= await lost(here, run)
    assert await violations(here.fleet) == []


@together
@pytest.mark.parametrize(
    "point",
    [
        "host.started",
        pytest.param("host.before_start", marks=pytest.mark.slow),
        pytest.param("host.finished", marks=pytest.mark.slow),
    ],
)
async def test_a_host_that_dies_around_a_batch_leaves_nothing_undone(here: Crew, point):
    run = await begun(here)

    async with here.kept():
        here.arm({point: "kill times:1"})
        ended = await here.fleet.ended(run)

    assert (ended, here.ends) == ("Succeeded", [(Kind.HOST, -signal.SIGKILL)])
    assert await here.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert await violations(here.fleet) == []
