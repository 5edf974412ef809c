"""Asks a server again that is away for a moment; in all it is waited for as long as was promised, and no longer."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from muster.core.clock import Clock
from muster.core.errors import Unavailable

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds; each is twice the one before


class Patience:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds  # with each server, from its first failure on
        self._until: dict[str, float] = {}

    async def ask(self, server_id: str, question: Callable[[], Awaitable[T]]) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                return await question()
            except Unavailable:
                now = self._clock.monotonic()
                if now + pause > self._until.setdefault(server_id, now + self._seconds):
                    raise
            await self._clock.sleep(timedelta(seconds=pause))
            pause = min(2 * pause, LONGEST_PAUSE)
