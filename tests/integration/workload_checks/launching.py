"""Checks 29–39: processes are started once, watched, and ended; starts are throttled, work is not lost."""

import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta

from fsm.launch import claims
from fsm.launch.protocol import Kind, Reason
from tests.integration.workload_checks.table import check
from tests.support.fake_runtime import ROOMY, bench
from tests.support.launching import QueueFixture, crashing_launcher, found, launcher, machine, until


def is_in(queue: QueueFixture, workload, state: str):
    async def look() -> bool:
        return await queue.state(workload) == state

    return look


async def runs(queue: QueueFixture, workload) -> int:
    """The pid of its process, once it has said that it runs."""
    await until(is_in(queue, workload, "running"))
    return (await queue.get(workload)).report["pid"]


@check(29)
async def a_killed_process_is_a_failure_at_once(queue: QueueFixture) -> None:
    async with machine(queue) as settings, launcher(settings):
        workload = await queue.enqueue()
        os.kill(await runs(queue, workload), signal.SIGKILL)
        await until(is_in(queue, workload, "failure"), within=5)

    workload = await queue.get(workload)
    assert (workload.reason, workload.exit_code) == (Reason.EXITED, -signal.SIGKILL)
    assert workload.gone_at


@check(30)
async def a_cancelled_process_ends_by_itself(queue: QueueFixture) -> None:
    async with machine(queue) as settings:
        async with launcher(settings):
            workload = await queue.enqueue()
            await runs(queue, workload)
        [process] = found(settings.launcher_dir)  # its launcher is gone, and it lives

        await queue.do("cancelled", workload, reason=Reason.REQUESTED, source="test")
        await until(lambda: not process.alive, within=5)


@check(31)
async def an_unheard_process_ends_by_itself(queue: QueueFixture) -> None:
    queue.settings = replace(queue.settings, workload_silent=timedelta(seconds=1))
    async with machine(queue) as settings:
        async with launcher(settings):
            workload = await queue.enqueue()
            await runs(queue, workload)
        [process] = found(settings.launcher_dir)
    # The Workload API is away now, and nobody else speaks to the process.
    await until(lambda: not process.alive, within=5)


@check(32)
async def a_restarted_launcher_goes_on_with_its_claims(queue: QueueFixture) -> None:
    workload = await queue.enqueue()
    await queue.launcher("D2")
    async with machine(queue) as settings:
        async with launcher(replace(settings, launcher_parallelism=0)):
            pass  # registered, and that is all it did
        assert await queue.claim(workload, "L1")

        async with launcher(settings):
            await runs(queue, workload)
            assert len(found(settings.launcher_dir)) == 1
            assert not await queue.claim(workload, "D2")
            assert (await queue.get(workload)).claimed_by == "L1"


@check(33)
async def a_process_is_never_started_twice(queue: QueueFixture) -> None:
    workload = await queue.enqueue(how="slow:0.5")
    async with machine(queue) as settings:
        await crashing_launcher(settings, "launch.started")
        [process] = found(settings.launcher_dir)
        assert (await queue.get(workload)).launched_at is None

        async with launcher(settings):
            assert await runs(queue, workload) == process.pid
            assert found(settings.launcher_dir) == [process]
    assert (await queue.get(workload)).attempt == 1


@check(34)
async def old_claims_come_before_new_ones(queue: QueueFixture) -> None:
    old = [await queue.enqueue() for _ in range(15)]
    await queue.launcher("L1")
    for workload in old:
        assert await queue.claim(workload, "L1")
    new = await queue.enqueue()
    await queue.db.execute("delete from launcher")
    async with bench(queue) as made:
        for finished in range(15):
            await made.settle()
            assert (await queue.state(new) != "pending") == (finished >= 14)
            waiting = [
                w for w in old if w.id in made.runtime.alive and await queue.state(w) != "running"
            ]
            assert len(waiting) <= 10
            await queue.do("running", waiting[0])


@check(35)
async def starts_are_throttled(queue: QueueFixture) -> None:
    queue.settings = replace(queue.settings, launcher_parallelism=2)
    queue.__post_init__()
    made = [await queue.enqueue() for _ in range(3)]
    async with bench(queue) as machine:
        await machine.settle()

        assert len(machine.runtime.started) == 2
        assert [await queue.state(w) for w in made] == ["launched", "launched", "pending"]


@check(36)
async def the_backlog_drains_when_there_is_room(queue: QueueFixture) -> None:
    made = [await queue.enqueue() for _ in range(5)]
    async with bench(queue) as machine:
        machine.room = replace(ROOMY, memory=-1)
        await machine.settle()
        assert machine.runtime.started == []
        assert "memory" in machine.launcher.capacity()["full"]

        machine.room = ROOMY
        await machine.settle()
        assert set(machine.runtime.started) == {w.id for w in made}
        assert machine.launcher.capacity()["full"] is None


@check(37)
async def a_cap_is_a_cap(queue: QueueFixture) -> None:
    queue.settings = replace(queue.settings, max_running_command=3)
    queue.__post_init__()
    made = [await queue.enqueue(Kind.COMMAND) for _ in range(10)]
    most = 0
    async with bench(queue) as machine:
        for _ in made:
            await machine.settle()
            most = max(most, len(machine.runtime.alive))
            workload = next(w for w in made if w.id in machine.runtime.alive)
            await queue.do("running", workload)
            await queue.do("success", workload, {"ok": True}, source="workload")
            machine.runtime.die(workload.id)
        await machine.settle()

    assert most == 3
    assert {await queue.state(w) for w in made} == {"success"}


@check(38)
async def a_disabled_launcher_takes_nothing_new(queue: QueueFixture) -> None:
    before = await queue.enqueue()
    async with bench(queue) as machine:
        await machine.settle()
        await queue.do("running", before)
        await set_enabled(queue, machine, enabled=False)
        after = await queue.enqueue()
        await machine.settle()
        assert await queue.state(after) == "pending"
        await queue.do("success", before, None, source="workload")  # what runs may finish

        await set_enabled(queue, machine, enabled=True)
        await machine.settle()
        assert await queue.state(after) == "launched"


async def set_enabled(queue: QueueFixture, machine, *, enabled: bool) -> None:
    async with queue.db.transaction() as tx:
        await claims.enable(tx, "L1", enabled=enabled)
    await machine.launcher.begin()


@check(39)
async def a_start_that_fails_is_a_failure(queue: QueueFixture) -> None:
    def nowhere(*_) -> list[str]:
        return ["/nowhere/at/all"]

    def dies(*_) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit(7)"]

    async with machine(queue) as settings:
        async with launcher(settings, program=nowhere):
            absent = await queue.enqueue(Kind.COMMAND)
            await until(is_in(queue, absent, "failure"))
        async with launcher(settings, program=dies):
            dead = await queue.enqueue(Kind.COMMAND)
            await until(is_in(queue, dead, "failure"))

    absent, dead = await queue.get(absent), await queue.get(dead)
    assert (absent.reason, absent.gone_at is None) == (Reason.START_FAILED, False)
    assert (dead.reason, dead.exit_code) == (Reason.EXITED, 7)
