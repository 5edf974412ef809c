"""Makes processes out of workloads, and keeps rows and processes in agreement.

One rule for the daily round, for a restart and for a delete that races a start: for each workload
that is ours, look at its row and at its process, and do the one thing that is missing.

    row          process   what is missing
    claimed      none      the start; or, if it was started before, the news of its end
    claimed      runs      the news that it runs: we died between the two
    launched+    runs      nothing: it is watched
    launched+    none      the news of its end
    over         runs      its end
    over         none      the news that nothing is left
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
from fsm.launch.workload_runner import Hands
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault

log = telemetry.get(__name__)

STARTING = frozenset({State.CLAIMED, State.LAUNCHED})
TIDY = timedelta(seconds=60)
GRACE = timedelta(seconds=3)  # what is being done when we are stopped may still finish in this time


@dataclass(kw_only=True)
class Launcher:
    hands: Hands
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
        self.desk = self.hands.desk
        self.runtime = self.hands.runtime
        self.settings = self.hands.settings

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Until `stop`. What was started goes on, unless the settings say that we drain."""
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
        """Says that we are here, and remembers what a former life had claimed."""
        self._enabled = await self.desk.beat(self.capacity())
        self._claims = {w.id for w in await self.desk.mine() if w.state is State.CLAIMED}

    async def turn(self, group: asyncio.TaskGroup) -> None:
        """Brings rows and processes together, then takes more if there is room."""
        mine = await self.desk.mine()
        self._running = sum(w.state is State.RUNNING for w in mine)
        self._starting = Counter(w.priority for w in mine if self._under_way(w))
        for workload in mine:
            if workload.id not in self._jobs:
                self._reconcile(group, workload)
        for id in self.runtime.known() - {w.id for w in mine} - self._jobs.keys():
            self._do(group, id, partial(self.hands.end_unknown, id))
        if self._enabled and self._settled(mine):
            await self._take(group)

    def capacity(self) -> dict[str, Any]:
        """For whoever wonders why something waits."""
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
                self._do(group, workload.id, partial(self.hands.gone, workload.id))
            elif self._starting[workload.priority] < self.settings.launcher_parallelism:
                self._begin(group, workload)
        elif workload.state.over:
            end = self.hands.see_off if workload.source == BY_ITSELF else self.hands.stop
            self._do(group, workload.id, partial(end, handle))
        else:
            self._watch(group, handle)
            if workload.state is State.CLAIMED:
                self._do(group, workload.id, partial(self.hands.report, handle))

    def _under_way(self, workload: Workload) -> bool:
        """It takes a start slot; a claim of a former life only once its start was begun."""
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
                workload = await self.desk.take(priority)
                if workload is None:
                    break
                self._begin(group, workload)
            if full and full != self._full:
                log.warning("no capacity for more workloads", why=full)
            self._full = full

    def _begin(self, group: asyncio.TaskGroup, workload: Workload) -> None:
        async def start() -> None:
            handle = await self.hands.start(workload)
            if handle is not None:
                self._watch(group, handle)
                await self.hands.report(handle)

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
        """One thing at a time for one workload; what fails is tried again in a later turn."""

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
                enabled = await self.desk.beat(self.capacity())
            except Fault as error:
                log.warning("launcher heartbeat was not written", why=error.message)
                continue
            if enabled and not self._enabled:
                self.woken.set()
            self._enabled = enabled

    async def _tidy(self, stop: asyncio.Event) -> None:
        """Logs live as long as the rows of their workloads, and never grow without end."""
        while not stop.is_set():
            try:
                logged = self.runtime.logged()
                self.runtime.tidy(logged - await self.desk.known(logged))
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
            await self.hands.drain()
