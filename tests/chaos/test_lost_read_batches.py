"""Hosts that are lost while several tasks go to a database in one breath: all of them are done in the end."""

import asyncio
import contextlib
import signal
from collections import Counter
from uuid import UUID, uuid4

import asyncpg
import pytest

from fsm.launch.protocol import Kind
from tests.chaos.run_invariants import PROBE, violations
from tests.chaos.test_lost_hosts import ends_first, gone
from tests.support.engine_processes import EngineProcesses, start_processes
from tests.support.engine_fixture import Running
from tests.support.fleet import plane
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
        start_processes(
            settings, db, control, targets, folder, databases=1, max_connections=2
        ) as processes,
    ):
        fleet = processes.fleet
        await fleet.query(0, PROBE)
        await fleet.query(0, SCHEMAS)
        await fleet.call("sp_add_target_group", target_group_name="schemas")
        await fleet.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=fleet.databases[0], schema_pattern="t%",
        )  # fmt: skip
        yield processes


@pytest.fixture(scope="module")
def make_processes(postgres, control, targets, tmp_path_factory):
    return lambda: narrow(postgres, control, targets, tmp_path_factory.mktemp("batches"))


async def begun(processes: EngineProcesses) -> UUID:
    """A run whose tasks ride."""
    name = f"together {uuid4()}"
    options = {"settings": {"access": "readOnly"}}
    await processes.fleet.job(name, NAPS, group="schemas", options=options)
    run = await processes.fleet.start(name)

    async def several() -> bool:
        return bool(await batch_tasks_of(processes, run))

    await until(several)
    return run


async def batch_tasks_of(processes: EngineProcesses, run: UUID) -> list[asyncpg.Record]:
    """Its tasks that share a session with others now."""
    live = [task for task in await processes.fleet.tasks(run) if task["lifecycle"] == "InProgress"]
    shared = Counter(task["backend_pid"] for task in live)
    return [task for task in live if shared[task["backend_pid"]] > 1]


async def frozen(processes: EngineProcesses) -> tuple[UUID, list[asyncpg.Record], Running]:
    """A run, and what rides in it while its host stands still."""
    run = await begun(processes)
    async with asyncio.timeout(10):
        while True:
            victim = processes.host_of((await processes.fleet.tasks(run))[0])
            victim.send(signal.SIGSTOP)
            await asyncio.sleep(0.3)  # what it had said is written by then
            if batch_tasks := await batch_tasks_of(processes, run):
                return run, batch_tasks, victim
            victim.send(signal.SIGCONT)
            await asyncio.sleep(0.03)


async def lost(processes: EngineProcesses, run: UUID) -> set[int]:
    """Ordinals of the attempts that were lost with their host, each of which was the first of its target."""
    tasks = [t for t in await processes.fleet.tasks(run) if t["end_reason"] == "HostLost"]
    assert {task["attempt"] for task in tasks} == {1}
    return {task["ordinal"] for task in tasks}


def ordinals(tasks: list[asyncpg.Record]) -> set[int]:
    return {task["ordinal"] for task in tasks}


@together
@pytest.mark.slow
async def test_what_a_killed_host_had_under_way_ends_at_once_and_is_done_again(
    processes: EngineProcesses,
):
    run, batch_tasks, victim = await frozen(processes)

    async with processes.kept():
        victim.send(signal.SIGKILL)
        await gone(processes, batch_tasks, within=5)
        ended = await processes.fleet.ended(run)

    assert (ended, processes.ends) == ("Succeeded", [(Kind.HOST, -signal.SIGKILL)])
    assert await processes.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert ordinals(batch_tasks) <= await lost(processes, run)
    assert await violations(processes.fleet) == []


@together
async def test_what_a_stopped_host_had_under_way_is_ended_before_another_begins(
    processes: EngineProcesses,
):
    run, batch_tasks, victim = await frozen(processes)

    met, judges = await ends_first(processes, run, batch_tasks)
    await processes.disowned(victim)
    victim.send(signal.SIGCONT)
    ended = await processes.fleet.ended(run)

    assert (met, ended) == (set(), "Succeeded")
    assert judges <= 1, "a server spares us one session for that"
    await processes.workloads.until(victim, lambda told: told["running"] == 0, "over")
    assert await processes.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert ordinals(batch_tasks) <= await lost(processes, run)
    assert await violations(processes.fleet) == []


@together
@pytest.mark.parametrize(
    "point",
    [
        "host.started",
        pytest.param("host.before_start", marks=pytest.mark.slow),
        pytest.param("host.finished", marks=pytest.mark.slow),
    ],
)
async def test_a_host_that_dies_around_a_batch_leaves_nothing_undone(
    processes: EngineProcesses, point
):
    run = await begun(processes)

    async with processes.kept():
        processes.arm({point: "kill times:1"})
        ended = await processes.fleet.ended(run)

    assert (ended, processes.ends) == ("Succeeded", [(Kind.HOST, -signal.SIGKILL)])
    assert await processes.fleet.lifecycles(run) == {"Succeeded": MANY}
    assert await violations(processes.fleet) == []
