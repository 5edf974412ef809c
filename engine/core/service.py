"""One part of the core: a loop of turns whose last sign of life is seen from outside."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from engine.context.cluster_state import View
from engine.db.control_db import Store
from engine.db.wakeups import Rings
from engine.process.exit_codes import FINAL
from engine.process.lease import Lease
from engine.targets.target_access import Targets
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault

log = telemetry.get(__name__)


@dataclass(frozen=True, kw_only=True)
class Means:
    """What all parts of one core share."""

    view: View
    store: Store
    lease: Lease  # with the control database
    clock: Clock
    heartbeat: timedelta
    host_patience: timedelta
    capacity: int  # targets that are worked on at once
    targets: Targets
    rings: Rings = field(default_factory=Rings)


class Part(ABC):
    name: ClassVar[str]
    channels: ClassVar[tuple[str, ...]] = ()  # whose wake-ups cut the pause short

    def __init__(self, means: Means) -> None:
        self.means = means
        self._rung = means.rings.of(self.name, *self.channels)
        self.watch = means.clock.monotonic()  # of its last sign of life
        self.doing = "idle"
        self._away = False

    @property
    def pause(self) -> timedelta:
        return self.means.heartbeat

    def alive(self) -> None:
        """A sign of life in the middle of a long turn."""
        self.watch = self.means.clock.monotonic()

    @abstractmethod
    async def turn(self) -> None:
        """One round of its duty. A Fault is waited out, anything else is a crash."""

    async def run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(self._ring_at(stop))
        try:
            while not stop.is_set():
                self.alive()
                self._rung.clear()
                await self._try()
                await self.means.clock.sleep_or(self._rung, self.pause)
        finally:
            stopping.cancel()

    async def _ring_at(self, stop: asyncio.Event) -> None:
        """One event to wait for is cheaper than two, and we wait often."""
        await stop.wait()
        self._rung.set()

    async def _try(self) -> None:
        try:
            await self.turn()
        except FINAL:
            raise
        except Fault as fault:
            if not self._away:
                log.warning("a part waits", part=self.name, why=fault.message, more=fault.context)
            self._away = True
            self.doing = "waits for the control database"
            return
        if self._away:
            log.info("a part goes on", part=self.name)
        self._away = False
