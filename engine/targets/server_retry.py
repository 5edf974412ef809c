"""Asks a server again that is away for a moment; in all it is waited for as long as was promised, and no longer.

One that is there and has no room for us is worth waiting for. One that is not there at all may be gone for
good, and the other targets of the step wait with us; one that kept us waiting had its time.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from muster.core.clock import Clock
from muster.core.connect_errors import NoRoom
from muster.core.errors import Unavailable

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds; each is twice the one before
AWAY = 8.0  # seconds for a server that can't be reached


class ServerRetry:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds  # with each server, from its first failure on
        self._since: dict[str, float] = {}

    async def ask(self, server_id: str, question: Callable[[], Awaitable[T]]) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                return await question()
            except Unavailable as fault:
                now = self._clock.monotonic()
                since = self._since.setdefault(server_id, now)
                if now + pause > since + self._limit(fault):
                    raise
            await self._clock.sleep(timedelta(seconds=pause))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _limit(self, fault: Unavailable) -> float:
        if fault.code == "TargetTimeout":
            return 0.0
        return self._seconds if isinstance(fault, NoRoom) else min(self._seconds, AWAY)
