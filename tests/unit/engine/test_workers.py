import asyncio
import contextlib
from datetime import timedelta

from engine.host.workers import Workers


@contextlib.asynccontextmanager
async def working(slots: int):
    workers = Workers(slots)
    workers.set_open(open=True)
    task = asyncio.create_task(workers.run())
    try:
        yield workers
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def held(gate: asyncio.Event, done: list):
    async def task() -> None:
        await gate.wait()
        done.append(True)

    return task


async def test_never_more_run_at_once_than_there_are_slots():
    gate, done = asyncio.Event(), []
    async with working(slots=3) as workers:
        for _ in range(5):
            workers.queue.put_nowait(held(gate, done))
        await settle()
        assert workers.running == 3

        gate.set()
        await settle()

    assert len(done) == 5 and workers.running == 0


async def test_slots_may_become_more_and_fewer():
    gate, done = asyncio.Event(), []
    async with working(slots=2) as workers:
        for _ in range(6):
            workers.queue.put_nowait(held(gate, done))
        await settle()
        workers.resize(5)
        await settle()
        assert workers.running == 5

        workers.resize(1)
        gate.set()
        await settle()
        assert len(done) == 6
        gate.clear()
        for _ in range(3):
            workers.queue.put_nowait(held(gate, done))
        await settle()
        assert workers.running == 1

        gate.set()
        await settle()

    assert len(done) == 9


async def test_closed_nothing_begins_and_what_waits_is_kept():
    gate, done = asyncio.Event(), []
    gate.set()
    async with working(slots=2) as workers:
        await settle()
        workers.set_open(open=False)
        workers.queue.put_nowait(held(gate, done))
        await settle()
        assert done == [] and workers.queue.qsize() == 1

        workers.set_open(open=True)
        await settle()

    assert done == [True]


async def test_a_drain_waits_for_what_runs_but_not_for_ever():
    gate, done = asyncio.Event(), []
    async with working(slots=1) as workers:
        workers.queue.put_nowait(held(gate, done))
        await settle()

        assert not await workers.drain(timedelta(milliseconds=5))
        gate.set()
        assert await workers.drain(timedelta(seconds=1))

    assert done == [True]


async def test_a_task_that_crashes_ends_no_other():
    gate, done = asyncio.Event(), []

    async def broken() -> None:
        raise RuntimeError

    async with working(slots=1) as workers:
        workers.queue.put_nowait(broken)
        workers.queue.put_nowait(held(gate, done))
        gate.set()
        await settle()

    assert done == [True]
