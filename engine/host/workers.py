"""The workers of a host: so many tasks at once, none begun while closed, all over after a drain."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from muster.core import telemetry

log = telemetry.get(__name__)

Task = Callable[[], Awaitable[None]]


class Workers:
    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running = 0
        self._hired = 0
        self._group: asyncio.TaskGroup | None = None
        self.queue: asyncio.Queue[Task] = asyncio.Queue()
        self._open = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()

    def set_open(self, *, open: bool) -> None:
        """Closed, nothing new begins and what runs goes on."""
        if open:
            self._open.set()
        else:
            self._open.clear()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def run(self) -> None:
        """For ever; broken off, it breaks off the tasks."""
        async with asyncio.TaskGroup() as self._group:
            self.resize(self.slots)

    def begin_now(self, task: Task) -> None:
        """Beside the others and open or not: it has begun elsewhere."""
        assert self._group is not None
        self._quiet.clear()
        self._group.create_task(self._do(task))

    def resize(self, slots: int) -> None:
        """More at once from now on, or fewer as soon as what runs is over."""
        self.slots = slots
        while self._group and self._hired < slots:
            self._hired += 1
            self._group.create_task(self._work())

    async def drain(self, within: timedelta) -> bool:
        """Closes for good; False when something still runs after that time."""
        self._open.clear()
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def _work(self) -> None:
        while True:
            await self._open.wait()
            task = await self.queue.get()
            if self._hired > self.slots:
                self._hired -= 1
                self.queue.put_nowait(task)
                return
            if not self._open.is_set():  # closed while this one waited
                self.queue.put_nowait(task)
                continue
            await self._do(task)

    async def _do(self, task: Task) -> None:
        self.running += 1
        self._quiet.clear()
        try:
            await task()
        except Exception:  # a mistake in one task must not end the others
            log.exception("a task crashed")
        finally:
            self.running -= 1
            if not self.running:
                self._quiet.set()
