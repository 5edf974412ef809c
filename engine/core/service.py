"""One part of the core: a loop of turns whose last sign of life is seen from outside."""

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
    channels: ClassVar[tuple[str, ...]] = ()  # whose wake-ups cut the pause short

    def __init__(self, context: CoreContext) -> None:
        self.context = context
        self._wakeup = context.wakeups.of(self.name, *self.channels)
        self.last_heartbeat = context.clock.monotonic()  # of its last sign of life
        self.status = "idle"
        self._away = False

    @property
    def pause(self) -> timedelta:
        return self.context.heartbeat

    def heartbeat(self) -> None:
        """A sign of life in the middle of a long turn."""
        self.last_heartbeat = self.context.clock.monotonic()

    @abstractmethod
    async def run_once(self) -> None:
        """One round of its duty. A Fault is waited out, anything else is a crash."""

    async def run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(self._ring_at(stop))
        try:
            while not stop.is_set():
                self.heartbeat()
                self._wakeup.clear()
                await self._try()
                await self.context.clock.sleep_or(self._wakeup, self.pause)
        finally:
            stopping.cancel()

    async def _ring_at(self, stop: asyncio.Event) -> None:
        """One event to wait for is cheaper than two, and we wait often."""
        await stop.wait()
        self._wakeup.set()

    async def _try(self) -> None:
        try:
            await self.run_once()
        except FINAL:
            raise
        except Fault as fault:
            if not self._away:
                log.warning(
                    "a part waits", service=self.name, why=fault.message, more=fault.context
                )
            self._away = True
            self.status = "waits for the control database"
            return
        if self._away:
            log.info("a part goes on", service=self.name)
        self._away = False
