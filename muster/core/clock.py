"""The only caller of the wall clock and of sleep, so that tests can own time."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime, timedelta


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())

    async def sleep_or(self, stop: asyncio.Event, delay: timedelta, *others: asyncio.Event) -> None:
        """Returns after `delay`, or at once when one of the events is set."""
        if not others:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay.total_seconds()):
                    await stop.wait()
            return
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, *others)]
        try:
            limit = delay.total_seconds()
            await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
