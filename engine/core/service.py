"""A service of the core: a loop whose heartbeat the supervisor watches."""

import asyncio
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import ClassVar

from engine.context.core_context import CoreContext
from engine.process.exit_codes import FINAL
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)


class Service(ABC):
    name: ClassVar[str]
    channels: ClassVar[tuple[str, ...]] = ()  # a notification on one of them ends the pause

    def __init__(self, context: CoreContext) -> None:
        self.context = context
        self._wakeup = context.wakeups.of(self.name, *self.channels)
        self.last_heartbeat = context.clock.monotonic()
        self.status = "idle"
        self._is_waiting = False

    @property
    def pause(self) -> timedelta:
        return self.context.heartbeat

    def heartbeat(self) -> None:
        """Called between and during rounds; a service without heartbeats hangs."""
        self.last_heartbeat = self.context.clock.monotonic()

    @abstractmethod
    async def run_once(self) -> None:
        """One round. After a Fault the next round tries again; any other exception is a crash."""

    async def run(self, stop: asyncio.Event) -> None:
        waker = asyncio.create_task(self._wake_on(stop))
        try:
            while not stop.is_set():
                self.heartbeat()
                self._wakeup.clear()
                await self._try()
                await self.context.clock.sleep_or(self._wakeup, self.pause)
        finally:
            waker.cancel()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        """Waiting for one event is cheaper than for two."""
        await stop.wait()
        self._wakeup.set()

    async def _try(self) -> None:
        try:
            await self.run_once()
        except FINAL:
            raise
        except Fault as fault:
            if not self._is_waiting:
                log.warning(
                    "service waits", service=self.name, why=fault.message, more=fault.context
                )
            self._is_waiting = True
            self.status = "waits for the control database"
            return
        if self._is_waiting:
            log.info("service recovered", service=self.name)
        self._is_waiting = False
