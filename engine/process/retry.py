"""Retries an operation while the control database is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from engine.process.backoff import Backoff
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Unavailable

log = telemetry.get(__name__)
T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds


async def retry_until_available(
    operation: Callable[[], Awaitable[T]], clock: Clock, stop: asyncio.Event
) -> T | None:
    """Returns what `operation` returns, or None when `stop` is set first."""
    backoff, logged = Backoff(FIRST_PAUSE, LONGEST_PAUSE), False
    while not stop.is_set():
        try:
            return await operation()
        except Unavailable as outage:
            if not logged:
                log.warning("waiting for the control database", why=outage.message)
            logged = True
        await clock.sleep_or(stop, backoff.next())
    return None
