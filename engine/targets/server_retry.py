"""Retries a query while its server is unavailable, up to a total time for each server.

A server that has no free connection is waited for in full. A server that can't be reached may be gone, and
the other targets of the step wait meanwhile: it has less time. A query that timed out is not retried.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from engine.process.backoff import Backoff
from muster.core.clock import Clock
from muster.core.connect_errors import NoRoom
from muster.core.errors import Unavailable

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds
UNREACHABLE_TIMEOUT = 8.0  # seconds in all for a server that can't be reached


class ServerRetry:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds  # for each server, from its first failure on
        self._first_failures: dict[str, float] = {}

    async def run(self, server_id: str, query: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                return await query()
            except Unavailable as fault:
                now = self._clock.monotonic()
                since = self._first_failures.setdefault(server_id, now)
                if now + backoff.seconds > since + self._timeout(fault):
                    raise
            await self._clock.sleep(backoff.next())

    def _timeout(self, fault: Unavailable) -> float:
        if fault.code == "TargetTimeout":
            return 0.0
        return (
            self._seconds if isinstance(fault, NoRoom) else min(self._seconds, UNREACHABLE_TIMEOUT)
        )
