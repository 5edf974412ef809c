"""Launchers that die at the worst moment: never a second process, never a stranger hit, nothing lost.

Rows 13–17 of the fault model (faults-and-attacks.md 2.2), with real processes and a real `kill -9`.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
from dataclasses import replace

import pytest

from fsm.launch.protocol import Priority, Reason
from muster.core.process import Process, boot_id
from tests.support.launcher_process import launchers
from tests.support.launching import COUNTED, QueueFixture, found, machine, quick, until

SEED = int(os.environ.get("MUSTER_TEST_SEED", "3"))


@pytest.fixture
def queue(db, settings, tmp_path) -> QueueFixture:
    return QueueFixture(db, quick(settings, tmp_path / "here"))


async def all_in(queue: QueueFixture, workloads, state: str, within: float = 30) -> None:
    async def look() -> bool:
        return all([await queue.state(w) == state for w in workloads])

    await until(look, within)


async def pids(queue: QueueFixture, workloads) -> list[int]:
    return [(await queue.get(w)).report["pid"] for w in workloads]


async def all_gone(queue: QueueFixture, folder, workloads) -> None:
    async def look() -> bool:
        return not found(folder / "workloads") and all(
            [(await queue.get(w)).gone_at for w in workloads]
        )

    await until(look)
    left = {path.suffix for path in (folder / "workloads").iterdir()}
    assert left <= {""}  # no start file with its secrets, no record


async def test_a_killed_launcher_takes_nobody_along_and_the_next_one_adopts(queue):
    async with machine(queue) as settings:
        with launchers(settings) as made:
            made.start()
            workloads = [await queue.enqueue(mutex_key=f"k{n}") for n in range(3)]
            await all_in(queue, workloads, "running")
            before = await pids(queue, workloads)

            made.kill()
            made.start()
            await until((made.folder / "ready").exists)
            later = await queue.enqueue()
            await all_in(queue, [*workloads, later], "running")

            assert await pids(queue, workloads) == before
            assert sorted(p.pid for p in found(made.folder / "workloads")) == sorted(
                [*before, *await pids(queue, [later])]
            )
            assert [(await queue.get(w)).attempt for w in workloads] == [1, 1, 1]

            for workload in (*workloads, later):  # what was adopted can be ended
                await queue.do("cancelled", workload, reason=Reason.REQUESTED, source="test")
            await all_gone(queue, made.folder, [*workloads, later])
            assert made.end() == [0]


@pytest.mark.parametrize("point", ["claimed", "armed", "started"])
async def test_a_launcher_that_dies_while_starting_starts_once(queue, point):
    async with machine(queue) as settings:
        with launchers(settings) as made:
            workload = await queue.enqueue(how="slow:0.3")
            first = made.start(**{point: "kill times:1"})
            assert await asyncio.to_thread(first.wait, 30) == -signal.SIGKILL
            alive = found(made.folder / "workloads")
            assert len(alive) == (1 if point == "started" else 0)

            made.start()
            await all_in(queue, [workload], "running")

            assert len(found(made.folder / "workloads")) == 1
            if alive:
                assert found(made.folder / "workloads") == alive


async def test_a_launcher_that_dies_while_stopping_says_so_later(queue):
    async with machine(queue) as settings:
        with launchers(settings) as made:
            first = made.start(stopped="kill times:1")
            workload = await queue.enqueue(how="deaf")
            await all_in(queue, [workload], "running")
            await queue.do("cancelled", workload, reason=Reason.REQUESTED, source="test")
            assert await asyncio.to_thread(first.wait, 30) == -signal.SIGKILL
            assert (await queue.get(workload)).gone_at is None

            made.start()
            await all_gone(queue, made.folder, [workload])


async def test_a_reused_pid_is_nobody_of_ours(queue):
    stranger = subprocess.Popen(["/bin/sleep", "60"])
    try:
        async with machine(queue) as settings:
            with launchers(settings) as made:
                made.start()
                workload = await queue.enqueue()
                await all_in(queue, [workload], "running")
                made.kill()
                [pid] = await pids(queue, [workload])
                os.kill(pid, signal.SIGKILL)
                await until(lambda: not found(made.folder / "workloads"))
                started = Process.find(stranger.pid).started
                record = {"pid": stranger.pid, "started": started, "boot_id": boot_id()}
                path = made.folder / "workloads" / f"{workload.id}.pid"
                path.write_text(json.dumps(record))

                made.start()
                await all_in(queue, [workload], "failure")

                assert (await queue.get(workload)).reason == Reason.EXITED
                await all_gone(queue, made.folder, [workload])
                assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_delete_that_races_a_start_leaves_no_process(queue):
    dice = random.Random(SEED)
    async with machine(queue) as settings:
        with launchers(settings) as made:
            made.start()
            await until((made.folder / "ready").exists)

            async def one() -> None:
                workload = await queue.enqueue()
                await asyncio.sleep(dice.uniform(0, 0.8))
                async with queue.db.transaction() as tx:
                    await queue.queue.cancel(tx, workload.id, Reason.ACCOUNT_DELETED)
                workloads.append(workload)

            workloads = []
            await asyncio.gather(*(one() for _ in range(10)))
            await all_gone(queue, made.folder, workloads)
            assert {await queue.state(w) for w in workloads} == {"cancelled"}


@pytest.mark.slow
async def test_twenty_at_once_never_start_more_than_the_parallelism(queue):
    queue.settings = replace(queue.settings, launcher_parallelism=3)
    await queue.db.execute(COUNTED)
    async with machine(queue) as settings:
        with launchers(settings) as made:
            made.start()
            workloads = [
                await queue.enqueue(priority=Priority.HIGH if n % 5 == 0 else Priority.DEFAULT)
                for n in range(20)
            ]
            await asyncio.sleep(1)
            made.kill()  # and the limit holds over its death
            made.start()
            await all_in(queue, workloads, "running", within=60)

            rows = await queue.db.fetch(
                "select priority, max(starting) as most from counted group by 1"
            )
            assert {r["priority"]: r["most"] for r in rows} == {"high": 3, "default": 3}
            assert len(found(made.folder / "workloads")) == 20
            assert len(set(await pids(queue, workloads))) == 20


async def test_a_second_launcher_of_the_same_folder_waits_outside(queue):
    async with machine(queue) as settings:
        with launchers(settings) as made:
            made.start()
            workload = await queue.enqueue()
            await all_in(queue, [workload], "running")
            second = made.start()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(second.wait, 1)

            assert second.poll() is None
            assert await queue.state(workload) == "running"
            assert len(found(made.folder / "workloads")) == 1
