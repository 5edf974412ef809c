"""JobTaskHost: registers with the engine in charge, lends it workers, and outlives it.

A core that dies changes nothing here: the next epoch adopts the registration, and from then on the host
writes with that epoch. It ends when it is refused, when a newer epoch did not adopt it, when its own
registration is over or draining, or when it could not renew for all of its patience.
"""

import asyncio
import contextlib
import os
from datetime import timedelta
from typing import Any

from engine import instance
from engine.bootstrap import Bootstrap
from engine.core import insist
from engine.ends import FINAL, Fenced
from engine.instance import HostBeat
from engine.lease import Lease
from engine.life import any_of
from engine.store import Store
from engine.workers import Workers
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.version import VERSION

log = telemetry.get(__name__)

REGISTER_LIMIT = 60.0  # seconds for our engine to take charge: it may start later than we do
LOOK = timedelta(milliseconds=200)
LAST_WORD = 2.0  # seconds to end the registration


class JobTaskHost:
    def __init__(self, bootstrap: Bootstrap, store: Store, lease: Lease, clock: Clock) -> None:
        self.workers = Workers(bootstrap.slots)
        self._bootstrap = bootstrap
        self._id = bootstrap.start.id
        self._store = store
        self._lease = lease
        self._clock = clock
        self._beat: HostBeat | None = None
        self._sent_off = asyncio.Event()  # our own registration is draining

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` and a drain, or until something final happens."""
        if not await self._registered(stop):
            return
        log.info("this host is registered", epoch=self._store.epoch, slots=self.workers.slots)
        try:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(self.workers.run())
                beating = group.create_task(self._beat_on())
                await any_of(stop, self._sent_off)
                await self.workers.drain(self._bootstrap.host_patience)
                working.cancel()
                beating.cancel()
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            await self._end_registration()

    async def hurry(self) -> None:
        """Nothing is left to do: `run` has ended the registration."""

    def report(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "pid": os.getpid(),
            "version": VERSION,
            "epoch": self._store.epoch,
            "state": "starting",
            "slots": self.workers.slots,
            "running": self.workers.running,
        }
        if beat := self._beat:
            told |= {"state": beat.state, "paused": beat.paused, "draining": beat.draining}
        return told

    async def _registered(self, stop: asyncio.Event) -> bool:
        """Only the epoch in charge has hosts, so ours must have begun; False: stopped before."""
        until = self._clock.monotonic() + REGISTER_LIMIT
        while not stop.is_set():
            try:
                if await insist(self._register, self._clock, stop):
                    return True
            except Fenced:
                if self._clock.monotonic() > until:
                    raise
            await self._clock.sleep_or(stop, LOOK)
        return False

    async def _register(self) -> bool:
        await instance.register(self._store, self._id, self.workers.slots)
        return True

    async def _beat_on(self) -> None:
        away = False
        while True:
            sent = self._clock.monotonic()
            try:
                self._obey(
                    await instance.host_heartbeat(self._store, self._id, self.workers.running)
                )
                self._lease.renew(sent)
                away = False
            except FINAL:
                raise
            except Fault as fault:
                self.workers.set_open(open=False)  # nobody starts anything while it is away
                if not away:
                    log.warning("the control database is waited for", why=fault.message)
                away = True
            await self._clock.sleep(self._bootstrap.heartbeat)

    def _obey(self, beat: HostBeat) -> None:
        if beat.current_epoch > beat.adopted_epoch:
            raise Fenced(f"epoch {beat.current_epoch} did not adopt this host")
        if beat.adopted_epoch != self._store.epoch:
            log.info("this host was adopted", epoch=beat.adopted_epoch, before=self._store.epoch)
            self._store.epoch = beat.adopted_epoch
        if beat.state == "draining":
            self._sent_off.set()
        closed = beat.paused or beat.draining or beat.state == "draining"
        self.workers.set_open(open=not closed)
        self._beat = beat

    async def _end_registration(self) -> None:
        """Said even when we are broken off: nothing runs here any more."""
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(LAST_WORD):
                await instance.end_host(self._store, self._id)
