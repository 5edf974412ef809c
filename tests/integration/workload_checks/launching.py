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
from tests.support.launching import Yard, crashing_launcher, found, launcher, machine, until


def is_in(yard: Yard, workload, state: str):
    async def look() -> bool:
        return await yard.state(workload) == state

    return look


async def runs(yard: Yard, workload) -> int:
    """The pid of its process, once it has said that it runs."""
    await until(is_in(yard, workload, "running"))
    return (await yard.get(workload)).report["pid"]


@check(29)
async def a_killed_process_is_a_failure_at_once(yard: Yard) -> None:
    async with machine(yard) as settings, launcher(settings):
        workload = await yard.enqueue()
        os.kill(await runs(yard, workload), signal.SIGKILL)
        await until(is_in(yard, workload, "failure"), within=5)

    workload = await yard.get(workload)
    assert (workload.reason, workload.exit_code) == (Reason.EXITED, -signal.SIGKILL)
    assert workload.gone_at


@check(30)
async def a_cancelled_process_ends_by_itself(yard: Yard) -> None:
    async with machine(yard) as settings:
        async with launcher(settings):
            workload = await yard.enqueue()
            await runs(yard, workload)
        [process] = found(settings.launcher_dir)  # its launcher is gone, and it lives

        await yard.do("cancelled", workload, reason=Reason.REQUESTED, source="test")
        await until(lambda: not process.alive, within=5)


@check(31)
async def an_unheard_process_ends_by_itself(yard: Yard) -> None:
    yard.settings = replace(yard.settings, workload_silent=timedelta(seconds=1))
    async with machine(yard) as settings:
        async with launcher(settings):
            workload = await yard.enqueue()
            await runs(yard, workload)
        [process] = found(settings.launcher_dir)
    # The Workload API is away now, and nobody else speaks to the process.
    await until(lambda: not process.alive, within=5)


@check(32)
async def a_restarted_launcher_goes_on_with_its_claims(yard: Yard) -> None:
    workload = await yard.enqueue()
    await yard.launcher("D2")
    async with machine(yard) as settings:
        async with launcher(replace(settings, launcher_parallelism=0)):
            pass  # registered, and that is all it did
        assert await yard.claim(workload, "L1")

        async with launcher(settings):
            await runs(yard, workload)
            assert len(found(settings.launcher_dir)) == 1
            assert not await yard.claim(workload, "D2")
            assert (await yard.get(workload)).claimed_by == "L1"


@check(33)
async def a_process_is_never_started_twice(yard: Yard) -> None:
    workload = await yard.enqueue(how="slow:0.5")
    async with machine(yard) as settings:
        await crashing_launcher(settings, "launch.started")
        [process] = found(settings.launcher_dir)
        assert (await yard.get(workload)).launched_at is None

        async with launcher(settings):
            assert await runs(yard, workload) == process.pid
            assert found(settings.launcher_dir) == [process]
    assert (await yard.get(workload)).attempt == 1


@check(34)
async def old_claims_come_before_new_ones(yard: Yard) -> None:
    old = [await yard.enqueue() for _ in range(15)]
    await yard.launcher("L1")
    for workload in old:
        assert await yard.claim(workload, "L1")
    new = await yard.enqueue()
    await yard.db.execute("delete from launcher")
    async with bench(yard) as made:
        for finished in range(15):
            await made.settle()
            assert (await yard.state(new) != "pending") == (finished >= 14)
            waiting = [
                w for w in old if w.id in made.runtime.alive and await yard.state(w) != "running"
            ]
            assert len(waiting) <= 10
            await yard.do("running", waiting[0])


@check(35)
async def starts_are_throttled(yard: Yard) -> None:
    yard.settings = replace(yard.settings, launcher_parallelism=2)
    yard.__post_init__()
    made = [await yard.enqueue() for _ in range(3)]
    async with bench(yard) as machine:
        await machine.settle()

        assert len(machine.runtime.started) == 2
        assert [await yard.state(w) for w in made] == ["launched", "launched", "pending"]


@check(36)
async def the_backlog_drains_when_there_is_room(yard: Yard) -> None:
    made = [await yard.enqueue() for _ in range(5)]
    async with bench(yard) as machine:
        machine.room = replace(ROOMY, memory=-1)
        await machine.settle()
        assert machine.runtime.started == []
        assert "memory" in machine.launcher.capacity()["full"]

        machine.room = ROOMY
        await machine.settle()
        assert set(machine.runtime.started) == {w.id for w in made}
        assert machine.launcher.capacity()["full"] is None


@check(37)
async def a_cap_is_a_cap(yard: Yard) -> None:
    yard.settings = replace(yard.settings, max_running_command=3)
    yard.__post_init__()
    made = [await yard.enqueue(Kind.COMMAND) for _ in range(10)]
    most = 0
    async with bench(yard) as machine:
        for _ in made:
            await machine.settle()
            most = max(most, len(machine.runtime.alive))
            workload = next(w for w in made if w.id in machine.runtime.alive)
            await yard.do("running", workload)
            await yard.do("success", workload, {"ok": True}, source="workload")
            machine.runtime.die(workload.id)
        await machine.settle()

    assert most == 3
    assert {await yard.state(w) for w in made} == {"success"}


@check(38)
async def a_disabled_launcher_takes_nothing_new(yard: Yard) -> None:
    before = await yard.enqueue()
    async with bench(yard) as machine:
        await machine.settle()
        await yard.do("running", before)
        await set_enabled(yard, machine, enabled=False)
        after = await yard.enqueue()
        await machine.settle()
        assert await yard.state(after) == "pending"
        await yard.do("success", before, None, source="workload")  # what runs may finish

        await set_enabled(yard, machine, enabled=True)
        await machine.settle()
        assert await yard.state(after) == "launched"


async def set_enabled(yard: Yard, machine, *, enabled: bool) -> None:
    async with yard.db.transaction() as tx:
        await claims.enable(tx, "L1", enabled=enabled)
    await machine.launcher.begin()


@check(39)
async def a_start_that_fails_is_a_failure(yard: Yard) -> None:
    def nowhere(*_) -> list[str]:
        return ["/nowhere/at/all"]

    def dies(*_) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit(7)"]

    async with machine(yard) as settings:
        async with launcher(settings, program=nowhere):
            absent = await yard.enqueue(Kind.COMMAND)
            await until(is_in(yard, absent, "failure"))
        async with launcher(settings, program=dies):
            dead = await yard.enqueue(Kind.COMMAND)
            await until(is_in(yard, dead, "failure"))

    absent, dead = await yard.get(absent), await yard.get(dead)
    assert (absent.reason, absent.gone_at is None) == (Reason.START_FAILED, False)
    assert (dead.reason, dead.exit_code) == (Reason.EXITED, 7)
