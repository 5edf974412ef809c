"""The workers of a host: run a limited number of tasks at once, start none while closed, finish all in a drain."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from muster.core import telemetry

log = telemetry.get(__name__)

WorkItem = Callable[[], Awaitable[None]]


class Workers:
    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running = 0
        self._workers = 0
        self._group: asyncio.TaskGroup | None = None
        self.queue: asyncio.Queue[WorkItem] = asyncio.Queue()
        self._open = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def set_open(self, *, open: bool) -> None:
        """While closed, no task starts; running tasks continue."""
        if open:
            self._open.set()
        else:
            self._open.clear()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def run(self) -> None:
        """Until it is cancelled, which cancels the tasks."""
        async with asyncio.TaskGroup() as self._group:
            self.resize(self.slots)

    def run_now(self, item: WorkItem) -> None:
        """Without waiting for a worker, open or not: the task has started in the control database."""
        assert self._group is not None
        self._idle.clear()
        self._group.create_task(self._run(item))

    def resize(self, slots: int) -> None:
        """More tasks at once from now on, or fewer as running ones finish."""
        self.slots = slots
        while self._group and self._workers < slots:
            self._workers += 1
            self._group.create_task(self._work())

    async def drain(self, within: timedelta) -> bool:
        """Closes for good; False when a task still runs after that time."""
        self._open.clear()
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _work(self) -> None:
        while True:
            await self._open.wait()
            item = await self.queue.get()
            if self._workers > self.slots:
                self._workers -= 1
                self.queue.put_nowait(item)
                return
            if not self._open.is_set():  # closed while the worker waited
                self.queue.put_nowait(item)
                continue
            await self._run(item)

    async def _run(self, item: WorkItem) -> None:
        self.running += 1
        self._idle.clear()
        try:
            await item()
        except Exception:  # an error in one task must not end the others
            log.exception("task crashed")
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()
