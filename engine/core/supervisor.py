"""JobHosting: starts the services of the core, watches their heartbeats, and restarts them.

A service that crashes or has no heartbeat for too long is restarted alone, with growing backoff. When memory
and database disagree, all services are stopped and the core loads its state from the database again. A stale
epoch ends the core.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from engine.context.cluster_state import ClusterState
from engine.core.service import Service
from engine.process.backoff import Backoff
from engine.process.exit_codes import FINAL, Disagreement, most_severe
from muster.core import telemetry
from muster.core.clock import Clock

log = telemetry.get(__name__)

CORE = "core"
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds
HEALTHY = 60.0  # seconds; a service that ran for so long is restarted after the first pause
POLL_INTERVAL = timedelta(seconds=1)
CANCEL_TIMEOUT = 3.0  # seconds; a service that can't be cancelled ends the process

ServiceFactories = Mapping[str, Callable[[], Service]]


class StuckError(Exception):
    """A service can't be cancelled: the process must end."""


@dataclass(kw_only=True)
class JobHosting:
    # Reads the database; None when it was stopped.
    load: Callable[[asyncio.Event], Awaitable[ClusterState | None]]
    make: Callable[[ClusterState], ServiceFactories]
    patience: timedelta  # a service without a heartbeat for longer hangs
    clock: Clock
    restarts: Counter[str] = field(default_factory=Counter)
    services: dict[str, Service] = field(default_factory=dict)  # the running ones
    cluster_state: ClusterState | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; raises Fenced and the other final errors."""
        backoff = RestartBackoff(self.clock)
        while not stop.is_set():
            backoff.begin()
            cluster_state = self.cluster_state = await self.load(stop)
            if cluster_state is None:
                return
            try:
                await self._run_services(self.make(cluster_state), stop)
            except Disagreement as error:
                self.restarts[CORE] += 1
                log.warning(
                    "memory and database disagree: restarting the core",
                    why=str(error),
                    times=self.restarts[CORE],
                )
                await self.clock.sleep_or(stop, backoff.next())

    async def _run_services(self, services: ServiceFactories, stop: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for name, make in services.items():
                    group.create_task(self._run_service(name, make, stop))
        except BaseExceptionGroup as several:
            raise most_severe(several) from None
        finally:
            self.services.clear()

    async def _run_service(
        self, name: str, make: Callable[[], Service], stop: asyncio.Event
    ) -> None:
        backoff = RestartBackoff(self.clock)
        while not stop.is_set():
            backoff.begin()
            self.services[name] = service = make()
            why = await self._watch(service, stop)
            if why is None:
                return
            self.restarts[name] += 1
            log.warning("restarting service", service=name, why=why, times=self.restarts[name])
            await self.clock.sleep_or(stop, backoff.next())

    async def _watch(self, service: Service, stop: asyncio.Event) -> str | None:
        """Returns why the service must be restarted; None when it ended after `stop`."""
        task = asyncio.create_task(service.run(stop), name=service.name)
        ended = asyncio.Event()
        task.add_done_callback(lambda _: ended.set())
        try:
            while not task.done():
                await self.clock.sleep_or(ended, min(POLL_INTERVAL, self.patience / 4))
                silent = self.clock.monotonic() - service.last_heartbeat
                if not task.done() and silent > self.patience.total_seconds():
                    return f"it hangs: no heartbeat for {silent:.1f} s"
        finally:
            await _cancel(task)
        if task.cancelled():
            return "it was cancelled"
        error = task.exception()
        if isinstance(error, FINAL):
            raise error
        if error is not None:
            log.error("service crashed", service=service.name, exc_info=error)
            return f"it crashed: {type(error).__name__}"
        return None if stop.is_set() else "it ended by itself"


class RestartBackoff:
    """Pauses between restarts; the first one again after a healthy run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._started_at = clock.monotonic()

    def begin(self) -> None:
        self._started_at = self._clock.monotonic()

    def next(self) -> timedelta:
        if self._clock.monotonic() - self._started_at > HEALTHY:
            self._backoff.reset()
        return self._backoff.next()


async def _cancel(task: asyncio.Task[None]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_TIMEOUT)
        if not task.done():
            raise StuckError(f"{task.get_name()} can't be stopped")
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
