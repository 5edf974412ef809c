"""Starts a process for each workload, and reconciles rows and processes.

One rule for every cycle, for a restart and for a delete that races a start: for each workload of this
launcher, compare its row with its process, and do the one thing that is missing.

    row          process   what is missing
    claimed      none      the start; or, if it was started before, the report of its end
    claimed      runs      the report that it runs: the launcher ended between the two
    launched+    runs      nothing: it is watched
    launched+    none      the report of its end
    over         runs      its end
    over         none      the report that nothing is left
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from fsm.launch import capacity
from fsm.launch.capacity import Room
from fsm.launch.protocol import Priority, State
from fsm.launch.runtime import Handle
from fsm.launch.workload import BY_ITSELF, Workload
from fsm.launch.workload_runner import WorkloadRunner
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault

log = telemetry.get(__name__)

STARTING = frozenset({State.CLAIMED, State.LAUNCHED})
TIDY = timedelta(seconds=60)
GRACE = timedelta(seconds=3)  # what is being done when we are stopped may still finish in this time


@dataclass(kw_only=True)
class Launcher:
    workload_runner: WorkloadRunner
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Clock = field(default_factory=Clock)
    look: Callable[[], Room] = capacity.look
    _enabled: bool = False
    _full: str | None = None  # why nothing new is taken
    _claims: set[UUID] | None = None  # of a former life, until few enough of them are open
    _starting: Counter[Priority] = field(default_factory=Counter)
    _running: int = 0
    _jobs: dict[UUID, asyncio.Task[None]] = field(default_factory=dict)
    _watched: dict[UUID, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queue_client = self.workload_runner.queue_client
        self.runtime = self.workload_runner.runtime
        self.settings = self.workload_runner.settings

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Until `stop`. Started processes keep running, unless the settings ask for a drain."""
        await self.begin()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat(stop))
            group.create_task(self._tidy(stop))
            ready()
            while not stop.is_set():
                self.woken.clear()
                try:
                    await self.turn(group)
                except Fault as error:
                    log.warning("launcher cycle interrupted", why=error.context)
                await self._pause(stop)
            await self._leave()

    async def begin(self) -> None:
        """Registers the launcher, and remembers the claims of its previous process."""
        self._enabled = await self.queue_client.beat(self.capacity())
        self._claims = {w.id for w in await self.queue_client.mine() if w.state is State.CLAIMED}

    async def turn(self, group: asyncio.TaskGroup) -> None:
        """Reconciles rows and processes, then takes more workloads if there is capacity."""
        mine = await self.queue_client.mine()
        self._running = sum(w.state is State.RUNNING for w in mine)
        self._starting = Counter(w.priority for w in mine if self._under_way(w))
        for workload in mine:
            if workload.id not in self._jobs:
                self._reconcile(group, workload)
        for id in self.runtime.known() - {w.id for w in mine} - self._jobs.keys():
            self._do(group, id, partial(self.workload_runner.end_unknown, id))
        if self._enabled and self._settled(mine):
            await self._take(group)

    def capacity(self) -> dict[str, Any]:
        """Shows why workloads wait."""
        now = self.look()
        return {
            "starting": dict(self._starting),
            "running": self._running,
            "parallelism": self.settings.launcher_parallelism,
            "memoryFree": now.memory,
            "loadPerCore": round(now.load, 2),
            "full": self._full,
        }

    def _reconcile(self, group: asyncio.TaskGroup, workload: Workload) -> None:
        handle = self.runtime.find(workload.id)
        if handle is None:
            if workload.state is not State.CLAIMED or self.runtime.was_started(workload.id):
                self._do(group, workload.id, partial(self.workload_runner.gone, workload.id))
            elif self._starting[workload.priority] < self.settings.launcher_parallelism:
                self._begin(group, workload)
        elif workload.state.over:
            end = (
                self.workload_runner.await_exit_then_stop
                if workload.source == BY_ITSELF
                else self.workload_runner.stop
            )
            self._do(group, workload.id, partial(end, handle))
        else:
            self._watch(group, handle)
            if workload.state is State.CLAIMED:
                self._do(group, workload.id, partial(self.workload_runner.report, handle))

    def _under_way(self, workload: Workload) -> bool:
        """It takes a start slot; a claim of the previous process only once its start was begun."""
        if workload.state is State.CLAIMED and workload.id not in self._jobs:
            return self.runtime.find(workload.id) is not None
        return workload.state in STARTING

    def _settled(self, mine: list[Workload]) -> bool:
        """Old claims first: new ones only when few enough of the old are still open."""
        if self._claims is not None:
            self._claims &= {w.id for w in mine if w.state in STARTING}
            most = self.settings.launcher_parallelism * self.settings.launcher_surge // 100
            if len(self._claims) > most:
                return False
            self._claims = None
        return True

    async def _take(self, group: asyncio.TaskGroup) -> None:
        for priority in Priority:
            while not (full := capacity.full(self.look(), self.settings, self._starting.total())):
                workload = await self.queue_client.take(priority)
                if workload is None:
                    break
                self._begin(group, workload)
            if full and full != self._full:
                log.warning("no capacity for more workloads", why=full)
            self._full = full

    def _begin(self, group: asyncio.TaskGroup, workload: Workload) -> None:
        async def start() -> None:
            handle = await self.workload_runner.start(workload)
            if handle is not None:
                self._watch(group, handle)
                await self.workload_runner.report(handle)

        self._starting[workload.priority] += 1
        self._do(group, workload.id, start)

    def _watch(self, group: asyncio.TaskGroup, handle: Handle) -> None:
        async def watch() -> None:
            await self.runtime.ended(handle)
            del self._watched[handle.id]
            self.woken.set()

        if handle.id not in self._watched:
            self._watched[handle.id] = group.create_task(watch())

    def _do(self, group: asyncio.TaskGroup, id: UUID, work: Callable[[], Awaitable[None]]) -> None:
        """One action at a time for one workload; a failed one is retried in a later cycle."""

        async def job() -> None:
            try:
                await work()
                self.woken.set()
            except Fault as error:
                log.warning("retry in a later cycle", workload=id, why=error.context or str(error))
            finally:
                del self._jobs[id]

        self._jobs[id] = group.create_task(job())

    async def _beat(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.clock.sleep_or(stop, self.settings.workload_heartbeat)
            try:
                enabled = await self.queue_client.beat(self.capacity())
            except Fault as error:
                log.warning("launcher heartbeat was not written", why=error.message)
                continue
            if enabled and not self._enabled:
                self.woken.set()
            self._enabled = enabled

    async def _tidy(self, stop: asyncio.Event) -> None:
        """Logs are kept as long as the rows of their workloads, and are bounded in size."""
        while not stop.is_set():
            try:
                logged = self.runtime.logged()
                self.runtime.tidy(logged - await self.queue_client.known(logged))
            except (Fault, OSError) as error:
                log.warning("can't clean up logs", why=str(error))
            await self.clock.sleep_or(stop, TIDY)

    async def _pause(self, stop: asyncio.Event) -> None:
        busy = self._starting or self._jobs or self._full
        pause = self.settings.poll_busy if busy else self.settings.poll_idle
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, self.woken)]
        try:
            await asyncio.wait(
                waits, timeout=pause.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()

    async def _leave(self) -> None:
        if self._jobs:
            await asyncio.wait(self._jobs.values(), timeout=GRACE.total_seconds())
        for task in (*self._jobs.values(), *self._watched.values()):
            task.cancel()
        if self.settings.launcher_drain:
            await self.workload_runner.drain()
