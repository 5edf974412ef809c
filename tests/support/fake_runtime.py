"""Processes that are only names, and a launcher that moves when a test says so."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from fsm.launch.queue_client import QueueClient
from fsm.launch.workload_runner import WorkloadRunner
from fsm.launch.launcher import Launcher
from fsm.launch.protocol import Start
from fsm.launch.capacity import Room
from fsm.launch.runtime import Handle, StartFailed
from muster.core.secrets import Keyring
from tests.support.launching import QueueFixture

ROOMY = Room(memory=2**40, load=0.0)


@dataclass
class FakeRuntime:
    alive: dict[UUID, asyncio.Event] = field(default_factory=dict)
    started: list[UUID] = field(default_factory=list)
    broken: bool = False
    _seen: set[UUID] = field(default_factory=set)
    _codes: dict[UUID, int] = field(default_factory=dict)

    async def start(self, start: Start) -> Handle:
        if self.broken:
            raise StartFailed("no such program")
        if start.id not in self.alive:
            self.alive[start.id] = asyncio.Event()
            self.started.append(start.id)
            self._seen.add(start.id)
        return Handle(start.id, self.alive[start.id])

    def find(self, id: UUID) -> Handle | None:
        return Handle(id, self.alive[id]) if id in self.alive else None

    def was_started(self, id: UUID) -> bool:
        return id in self._seen

    async def ended(self, handle: Handle) -> None:
        await handle.mark.wait()

    def exit_code(self, id: UUID) -> int | None:
        return self._codes.get(id)

    async def stop(self, handle: Handle, grace: timedelta, *, now: bool = False) -> None:
        self.die(handle.id, -15)

    def forget(self, id: UUID) -> None:
        self._seen.discard(id)
        self._codes.pop(id, None)

    def known(self) -> set[UUID]:
        return set(self._seen)

    def logs(self, id: UUID, most: int = 65536) -> bytes:
        return b""

    def logged(self) -> set[UUID]:
        return set()

    def tidy(self, drop: Iterable[UUID]) -> None:
        pass

    def die(self, id: UUID, code: int = 0) -> None:
        if over := self.alive.pop(id, None):
            self._codes[id] = code
            over.set()


@dataclass
class Bench:
    """A launcher on a fake machine; `settle` lets it do all it can."""

    queue: QueueFixture
    launcher: Launcher
    runtime: FakeRuntime
    group: asyncio.TaskGroup
    room: Room = ROOMY

    async def settle(self) -> None:
        while True:
            self.launcher.woken.clear()
            await self.launcher.turn(self.group)
            while self.launcher._jobs:
                await asyncio.wait(list(self.launcher._jobs.values()))
            if not self.launcher.woken.is_set():
                return


@contextlib.asynccontextmanager
async def bench(queue: QueueFixture, name: str = "L1"):
    runtime = FakeRuntime()
    queue_client = QueueClient(
        db=queue.db, queue=queue.queue, name=name, group="default", home=UUID(int=7)
    )
    workload_runner = WorkloadRunner(
        queue_client=queue_client, runtime=runtime, settings=queue.settings, keyring=Keyring(queue.settings.keys),
        url="http://nowhere",
    )  # fmt: skip
    launcher = Launcher(workload_runner=workload_runner)
    async with asyncio.TaskGroup() as group:
        made = Bench(queue, launcher, runtime, group)
        launcher.look = lambda: made.room
        await launcher.begin()
        try:
            yield made
        finally:
            await launcher._leave()
