"""A host's place with the engine in charge: taken, kept by heartbeats, and given up.

It writes with the epoch that adopted it. It is over when a newer epoch did not adopt the host.
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

LIMIT = 60.0  # seconds for our engine to take charge: it may start later than we do
LOOK = timedelta(milliseconds=200)
LAST_WORD = 1.5  # seconds to give it up


class Registration:
    def __init__(self, store: ControlDatabase, host: UUID, lease: Lease, clock: Clock) -> None:
        self._store = store
        self._host = host
        self._lease = lease
        self._clock = clock

    async def begin(self, slots: int, stop: asyncio.Event) -> bool:
        """Only the epoch in charge has hosts, so ours must have begun; False: stopped before."""

        async def register() -> bool:
            await membership.register(self._store, self._host, slots)
            return True

        until = self._clock.monotonic() + LIMIT
        while not stop.is_set():
            try:
                if await retry_until_available(register, self._clock, stop):
                    return True
            except Fenced:
                if self._clock.monotonic() > until:
                    raise
            await self._clock.sleep_or(stop, LOOK)
        return False

    async def renew(self, running: int) -> HostState:
        """What the host must obey from now on."""
        sent = self._clock.monotonic()
        beat = await membership.host_heartbeat(self._store, self._host, running)
        if beat.current_epoch > beat.adopted_epoch:
            raise Fenced(f"epoch {beat.current_epoch} did not adopt this host")
        if beat.adopted_epoch != self._store.epoch:
            log.info("this host was adopted", epoch=beat.adopted_epoch, before=self._store.epoch)
            self._store.epoch = beat.adopted_epoch
        self._lease.renew(sent)
        return beat

    async def leave(self) -> None:
        """Nothing new is given to us."""
        await self._last_word(membership.leave)

    async def end(self) -> None:
        """Said even when we are broken off: nothing runs here any more."""
        await self._last_word(membership.end_host)

    async def _last_word(self, say: Callable[[ControlDatabase, UUID], Awaitable[None]]) -> None:
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(LAST_WORD):
                await say(self._store, self._host)
