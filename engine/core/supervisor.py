"""JobHosting: starts the parts of the core, watches them, and starts anew what does not go on.

A part that crashes or is silent for too long is started again, alone, with growing pauses. When memory
and database disagree, every part is stopped and the core begins again from the database. A stale epoch
ends it for good.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from engine.context.cluster_state import ClusterState
from engine.core.service import Service
from engine.process.exit_codes import FINAL, Disagreement, gravest
from muster.core import telemetry
from muster.core.clock import Clock

log = telemetry.get(__name__)

CORE = "core"
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds; doubled after each end
HEALTHY = 60.0  # seconds; what lived so long starts again after the first pause
LOOK = timedelta(seconds=1)
CANCEL_LIMIT = 3.0  # seconds; a part that can't even be cancelled takes the core with it

ServiceFactories = Mapping[str, Callable[[], Service]]


class StuckError(Exception):
    """A part does not end: only the end of the process helps."""


@dataclass(kw_only=True)
class JobHosting:
    load: Callable[
        [asyncio.Event], Awaitable[ClusterState | None]
    ]  # from the database; None: stopped
    make: Callable[[ClusterState], ServiceFactories]
    patience: timedelta  # a part that is silent for longer hangs
    clock: Clock
    restarts: Counter[str] = field(default_factory=Counter)
    services: dict[str, Service] = field(default_factory=dict)  # those that run
    cluster_state: ClusterState | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. Fenced and what else is final comes out as it is."""
        pauses = RestartBackoff(self.clock)
        while not stop.is_set():
            pauses.begin()
            cluster_state = self.cluster_state = await self.load(stop)
            if cluster_state is None:
                return
            try:
                await self._live(self.make(cluster_state), stop)
            except Disagreement as found:
                self.restarts[CORE] += 1
                log.warning(
                    "memory and database disagree: the core starts anew from the database",
                    why=str(found),
                    times=self.restarts[CORE],
                )
                await self.clock.sleep_or(stop, pauses.next())

    async def _live(self, services: ServiceFactories, stop: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for name, make in services.items():
                    group.create_task(self._keep(name, make, stop))
        except BaseExceptionGroup as several:
            raise gravest(several) from None
        finally:
            self.services.clear()

    async def _keep(self, name: str, make: Callable[[], Service], stop: asyncio.Event) -> None:
        pauses = RestartBackoff(self.clock)
        while not stop.is_set():
            pauses.begin()
            self.services[name] = service = make()
            why = await self._watch(service, stop)
            if why is None:
                return
            self.restarts[name] += 1
            log.warning("a part is started anew", service=name, why=why, times=self.restarts[name])
            await self.clock.sleep_or(stop, pauses.next())

    async def _watch(self, service: Service, stop: asyncio.Event) -> str | None:
        """Why it must be started again; None when it ended because it was asked to."""
        task = asyncio.create_task(service.run(stop), name=service.name)
        over = asyncio.Event()
        task.add_done_callback(lambda _: over.set())
        try:
            while not task.done():
                await self.clock.sleep_or(over, min(LOOK, self.patience / 4))
                silent = self.clock.monotonic() - service.last_heartbeat
                if not task.done() and silent > self.patience.total_seconds():
                    return f"it hangs, silent for {silent:.1f} s"
        finally:
            await _end(task)
        if task.cancelled():
            return "it was cancelled"
        error = task.exception()
        if isinstance(error, FINAL):
            raise error
        if error is not None:
            log.error("a part crashed", service=service.name, exc_info=error)
            return f"it crashed: {type(error).__name__}"
        return None if stop.is_set() else "it ended by itself"


class RestartBackoff:
    """Between two lives of the same thing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._born = clock.monotonic()

    def begin(self) -> None:
        self._born = self._clock.monotonic()

    def next(self) -> timedelta:
        if self._clock.monotonic() - self._born > HEALTHY:
            self._pause = FIRST_PAUSE
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return timedelta(seconds=pause)


async def _end(task: asyncio.Task[None]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_LIMIT)
        if not task.done():
            raise StuckError(f"{task.get_name()} can't be stopped")
        if not task.cancelled():
            task.exception()  # looked at: it was given up already
