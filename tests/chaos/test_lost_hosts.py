"""Hosts and cores that are lost in the middle of a script, as processes: what they ran is known, and done once."""

import contextlib
import os
import signal
from uuid import UUID, uuid4

import asyncpg
import pytest

from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind
from tests.chaos.run_invariants import EFFECT, PROBE, violations
from tests.support.engine_processes import EngineProcesses, code, start_processes
from tests.support.fleet import plane
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]
together = pytest.mark.asyncio(loop_scope="module")

JUDGES = "select from pg_stat_activity where application_name = 'muster-judge'"
ALIVE = "select pid, wait_event from pg_stat_activity where pid = any($1)"


@contextlib.asynccontextmanager
async def probed(postgres, control, targets, folder):
    async with (
        plane(postgres) as (settings, db),
        start_processes(settings, db, control, targets, folder, databases=2) as processes,
    ):
        for name in processes.fleet.databases:
            await processes.fleet.query(name, PROBE)
            await processes.fleet.query(name, "create table gate ()")
        yield processes


@pytest.fixture(scope="module")
def make_processes(postgres, control, targets, tmp_path_factory):
    return lambda: probed(postgres, control, targets, tmp_path_factory.mktemp("lost"))


async def running(processes: EngineProcesses, script: str) -> tuple[UUID, list[asyncpg.Record]]:
    """A run whose attempts have all begun, and have come to where they sleep."""
    name = f"slow {uuid4()}"
    await processes.fleet.job(name, script)
    run = await processes.fleet.start(name)
    many = len(processes.fleet.databases)

    async def asleep() -> bool:
        found = await alive(processes, await processes.fleet.tasks(run))
        return [row["wait_event"] for row in found] == ["PgSleep"] * many

    await until(asleep)
    return run, await processes.fleet.tasks(run)


def pids(tasks: list[asyncpg.Record]) -> list[int]:
    return [task["backend_pid"] for task in tasks]


async def alive(processes: EngineProcesses, tasks: list[asyncpg.Record]) -> list[asyncpg.Record]:
    """Their sessions at the target."""
    return await processes.fleet.query("postgres", ALIVE, pids(tasks))


async def gone(processes: EngineProcesses, tasks: list[asyncpg.Record], within: float) -> None:
    async def none() -> bool:
        return not await alive(processes, tasks)

    await until(none, within)


async def effects(processes: EngineProcesses, run: UUID) -> list[list[int]]:
    """The attempts that left something, by database."""
    left = "select attempt from probe where job_execution_id = $1"
    return [
        [row["attempt"] for row in await processes.fleet.query(name, left, run)]
        for name in processes.fleet.databases
    ]


UNTIL_THE_GATE_OPENS = """
do $$ begin
    while not exists (select from gate) loop perform pg_sleep(0.2); end loop;
end $$
"""
ONCE = f"{EFFECT}; select pg_sleep(case when $(attempt) = 1 then 30 else 0 end)"


@together
async def test_what_a_killed_host_ran_ends_at_once_and_is_done_again_once(
    processes: EngineProcesses,
):
    run, tasks = await running(processes, ONCE)
    (victim,) = {
        processes.host_of(task).workload.id: processes.host_of(task) for task in tasks
    }.values()

    async with processes.kept():
        victim.send(signal.SIGKILL)
        await gone(processes, tasks, within=5)
        ended = await processes.fleet.ended(run)

    assert (ended, processes.ends) == ("Succeeded", [(Kind.HOST, -signal.SIGKILL)])
    assert {target["attempts"] for target in await processes.fleet.targets_of(run)} == {2}
    lost = [task for task in await processes.fleet.tasks(run) if task["attempt"] == 1]
    assert {(task["lifecycle"], task["end_reason"]) for task in lost} == {("Failed", "HostLost")}
    assert await effects(processes, run) == [[2], [2]]
    assert await violations(processes.fleet) == []


@together
async def test_what_a_stopped_host_ran_is_ended_at_the_target_before_another_begins(
    processes: EngineProcesses,
):
    run, tasks = await running(processes, ONCE)
    (victim,) = {
        processes.host_of(task).workload.id: processes.host_of(task) for task in tasks
    }.values()

    victim.send(signal.SIGSTOP)
    met, judges = await ends_first(processes, run, tasks)
    await processes.disowned(victim)
    victim.send(signal.SIGCONT)
    ended = await processes.fleet.ended(run)

    assert met == set()
    assert judges <= 1, "a server spares us one session for that"
    assert ended == "Succeeded"
    # It lives on, and has said its late word.
    await processes.workloads.until(victim, lambda told: told["running"] == 0, "over")
    assert await effects(processes, run) == [[2], [2]]
    assert [t["attempts"] for t in await processes.fleet.targets_of(run)] == [2, 2]
    told = [
        (t["attempt"], t["lifecycle"], t["end_reason"]) for t in await processes.fleet.tasks(run)
    ]
    assert told == [(1, "Failed", "HostLost"), (2, "Succeeded", None)] * 2, "its word came too late"
    assert await violations(processes.fleet) == []


async def ends_first(
    processes: EngineProcesses, run: UUID, tasks: list[asyncpg.Record]
) -> tuple[set[int], int]:
    """Backends of first attempts that were seen when the second one of their target had begun; judges at once."""
    first = {task["ordinal"]: task["backend_pid"] for task in tasks}
    seen: set[int] = set()
    judges = 0

    async def over() -> bool:
        nonlocal judges
        judges = max(judges, len(await processes.fleet.query("postgres", JUDGES)))
        begun = [
            t for t in await processes.fleet.tasks(run) if t["attempt"] == 2 and t["start_time"]
        ]
        again = [task for task in begun if task["ordinal"] in first]
        # Asked afterwards: who is seen now was there when it began.
        there = {row["pid"] for row in await alive(processes, tasks)}
        seen.update(there & {first[task["ordinal"]] for task in again})
        return len(again) == len(tasks)

    await until(over)
    return seen, judges


@together
async def test_a_host_that_dies_between_its_commit_and_its_word_has_succeeded_once(
    processes: EngineProcesses,
):
    processes.arm({"host.finished": "kill times:1"})

    async with processes.kept():
        run = await processes.fleet.run(EFFECT)

    assert processes.ends == [(Kind.HOST, -signal.SIGKILL)]
    assert await processes.fleet.lifecycle(run) == "Succeeded"
    tasks = await processes.fleet.tasks(run)
    judged = "It committed; its host was lost before it reported that."
    assert judged in {task["message"] for task in tasks}
    assert {
        (task["attempt"], task["lifecycle"]) for task in tasks if task["message"] == judged
    } == {(1, "Succeeded")}
    assert sorted(map(len, await effects(processes, run))) == [1, 1]
    assert await violations(processes.fleet) == []


@together
async def test_a_script_lives_through_two_cores_and_ends_at_its_first_attempt(
    processes: EngineProcesses,
):
    run, tasks = await running(processes, f"{EFFECT}; {UNTIL_THE_GATE_OPENS}")

    epoch = processes.epoch

    async with processes.kept():
        first = processes.cores[0]
        first.send(signal.SIGKILL)
        await until(lambda: processes.cores and processes.cores != [first])
        await processes.workloads.until_reports(processes.cores[0], state="live")
    second = processes.cores.pop()
    second.send(signal.SIGTERM)
    assert await code(second) == Exit.DONE
    third = await processes.core()
    await processes.workloads.until_reports(third, state="live")
    for name in processes.fleet.databases:
        await processes.fleet.query(name, "insert into gate default values")
    ended = await processes.fleet.ended(run)

    assert processes.ends == [(Kind.ENGINE, -signal.SIGKILL)]
    assert ended == "Succeeded"
    after = await processes.fleet.tasks(run)
    assert [(task["attempt"], task["epoch"]) for task in after] == [(1, epoch), (1, epoch)]
    assert pids(after) == pids(tasks)
    assert await effects(processes, run) == [[1], [1]]
    assert await violations(processes.fleet) == []


@together
async def test_a_run_is_cancelled_although_its_host_sleeps(processes: EngineProcesses):
    run, tasks = await running(processes, f"{EFFECT}; select pg_sleep(60)")
    victim = processes.host_of(tasks[0])

    victim.send(signal.SIGSTOP)
    await processes.fleet.root.execute("select jobs.sp_stop_job($1)", run)
    ended = await processes.fleet.ended(run)
    await gone(processes, tasks, within=5)
    victim.send(signal.SIGCONT)
    await processes.workloads.until(victim, lambda told: told["running"] == 0, "over")

    assert ended == "Canceled"
    assert await processes.fleet.lifecycles(run) == {"Canceled": 2}
    assert await effects(processes, run) == [[], []]
    assert await violations(processes.fleet) == []


@together
async def test_nobody_begins_again_while_the_old_session_stays_whoever_is_in_charge(
    processes: EngineProcesses,
):
    run, tasks = await running(processes, ONCE)
    victim = processes.host_of(tasks[0])

    with frozen(tasks):
        async with processes.kept():
            victim.send(signal.SIGKILL)
            first = await renamed(processes, run, tasks)
            processes.cores[0].send(signal.SIGKILL)
            await renamed(processes, run, first)  # by the next core
            assert [task["attempt"] for task in await processes.fleet.tasks(run)] == [1, 1]
    ended = await processes.fleet.ended(run)

    assert ended == "Succeeded"
    assert {kind for kind, _ in processes.ends} == {Kind.HOST, Kind.ENGINE}
    assert (await processes.workloads.report(processes.cores[0]))["restarts"] == {}, (
        "it was right from the start"
    )
    assert await effects(processes, run) == [[2], [2]]
    assert await violations(processes.fleet) == []


@contextlib.contextmanager
def frozen(tasks: list[asyncpg.Record]):
    """Their sessions can neither go on nor end."""
    try:
        for pid in pids(tasks):
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids(tasks):
            os.kill(pid, signal.SIGCONT)


async def renamed(
    processes: EngineProcesses, run: UUID, tasks: list[asyncpg.Record]
) -> list[asyncpg.Record]:
    """The tasks, once they belong to nobody's host any more."""
    before = {task["invocation_id"] for task in tasks}

    async def disowned() -> bool:
        now = {task["invocation_id"] for task in await processes.fleet.tasks(run)}
        return not before & now

    await until(disowned)
    return await processes.fleet.tasks(run)
