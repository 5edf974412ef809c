"""A host's registration with the engine in charge: created, renewed by heartbeats, and ended.

The host writes with the epoch that adopted it. The registration has ended when a newer epoch did not adopt the host.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

from engine.db import membership
from engine.db.control_db import ControlDatabase
from engine.db.membership import HostState
from engine.process.exit_codes import Fenced
from engine.process.lease import Lease
from engine.process.retry import retry_until_available
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault

log = telemetry.get(__name__)

REGISTER_TIMEOUT = 60.0  # seconds: the engine may start later than its hosts
POLL_INTERVAL = timedelta(milliseconds=200)
END_TIMEOUT = 1.5  # seconds


class Registration:
    def __init__(self, store: ControlDatabase, host: UUID, lease: Lease, clock: Clock) -> None:
        self._store = store
        self._host = host
        self._lease = lease
        self._clock = clock

    async def begin(self, slots: int, stop: asyncio.Event) -> bool:
        """Waits until the host's epoch is in charge; False: stopped before."""

        async def register() -> bool:
            await membership.register(self._store, self._host, slots)
            return True

        until = self._clock.monotonic() + REGISTER_TIMEOUT
        while not stop.is_set():
            try:
                if await retry_until_available(register, self._clock, stop):
                    return True
            except Fenced:
                if self._clock.monotonic() > until:
                    raise
            await self._clock.sleep_or(stop, POLL_INTERVAL)
        return False

    async def renew(self, running: int) -> HostState:
        """The state that the control database wants the host to be in."""
        sent = self._clock.monotonic()
        beat = await membership.host_heartbeat(self._store, self._host, running)
        if beat.current_epoch > beat.adopted_epoch:
            raise Fenced(f"epoch {beat.current_epoch} did not adopt this host")
        if beat.adopted_epoch != self._store.epoch:
            log.info("host adopted", epoch=beat.adopted_epoch, before=self._store.epoch)
            self._store.epoch = beat.adopted_epoch
        self._lease.renew(sent)
        return beat

    async def leave(self) -> None:
        """The host gets no more tasks."""
        await self._within_timeout(membership.leave)

    async def end(self) -> None:
        """Also when the host is cancelled: nothing runs here any more."""
        await self._within_timeout(membership.end_host)

    async def _within_timeout(
        self, report: Callable[[ControlDatabase, UUID], Awaitable[None]]
    ) -> None:
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(END_TIMEOUT):
                await report(self._store, self._host)
