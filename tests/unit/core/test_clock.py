import asyncio
from datetime import UTC, timedelta

from muster.core.clock import Clock


async def test_time_and_its_passing():
    clock = Clock()
    stop = asyncio.Event()

    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()
    await clock.sleep(timedelta(0))
    await clock.sleep_or(stop, timedelta(milliseconds=1))
    stop.set()
    await clock.sleep_or(stop, timedelta(hours=1))
