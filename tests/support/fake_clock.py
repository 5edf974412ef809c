"""Time that moves only when a test says so."""

import asyncio
from datetime import timedelta

from muster.core.clock import Clock


class FakeClock(Clock):
    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    def advance(self, delay: timedelta) -> None:
        self.passed += delay.total_seconds()

    async def sleep(self, delay: timedelta) -> None:
        self.advance(delay)
        await asyncio.sleep(0)

    async def sleep_or(self, stop: asyncio.Event, delay: timedelta, *others: asyncio.Event) -> None:
        await self.sleep(delay)
