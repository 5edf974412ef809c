"""Large inputs of one caller wait for each other, and those of another caller for one of them."""

import asyncio
import threading

from muster.core import worker_thread
from muster.core.worker_thread import CALLER, LARGE, compute


async def as_caller(name, work):
    CALLER.set(name)
    await compute(work, size=LARGE + 1)


async def test_a_caller_with_many_large_inputs_does_not_keep_others_waiting():
    done, go_on = [], threading.Event()
    worker_thread.THREAD.submit(go_on.wait, 10)

    many = [asyncio.create_task(as_caller("greedy", lambda: done.append("g"))) for _ in range(9)]
    await asyncio.sleep(0)
    other = asyncio.create_task(as_caller("other", lambda: done.append("o")))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(other, *many)

    assert done.index("o") == 1
    assert len(done) == 10


async def test_without_a_caller_nothing_waits_for_a_turn():
    done = []

    await asyncio.gather(*(compute(done.append, n, size=LARGE + 1) for n in range(3)))

    assert sorted(done) == [0, 1, 2]
