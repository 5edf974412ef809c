"""Finds machines that are due and gives each to a runner; does no work while none is due."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from fsm import store
from fsm.runner import Runner, Turn
from fsm.store import Q
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.wake import Wake

log = telemetry.get(__name__)

GRACE = timedelta(seconds=5)  # what runs when we are stopped may still finish in this time


@dataclass
class Dispatcher:
    runner: Runner
    wake: Wake
    _driven: dict[UUID, asyncio.Task[None]] = field(default_factory=dict)

    async def run(self, stop: asyncio.Event) -> None:
        woken = self.wake.event("machine")
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                woken.clear()
                pause = await self._start_due(group, woken)
                await self._wait(stop, woken, pause)
            if self._driven:
                await asyncio.wait(self._driven.values(), timeout=GRACE.total_seconds())
            for task in self._driven.values():
                task.cancel()

    async def _start_due(self, group: asyncio.TaskGroup, woken: asyncio.Event) -> timedelta:
        """Starts what there is room for; answers how long nothing else needs to be looked for."""
        settings = self.runner.services.settings
        db = self.runner.services.db
        room = settings.runner_parallelism - len(self._driven)
        try:
            uids = await store.due(db, room + len(self._driven)) if room > 0 else []
            for uid in [uid for uid in uids if uid not in self._driven][:room]:
                self._driven[uid] = group.create_task(self._drive(uid, woken))
            if self._driven:
                return settings.poll_busy
            seconds = await db.fetchval(Q.next_due)
        except Fault as error:
            log.warning("machines can't be read", why=error.context)
            return settings.poll_busy
        if seconds is None:
            return settings.poll_idle
        return max(timedelta(milliseconds=5), min(settings.poll_idle, timedelta(seconds=seconds)))

    async def _drive(self, uid: UUID, woken: asyncio.Event) -> None:
        """Turn after turn while the machine has something to do now."""
        try:
            while (turn := await self.runner.turn(uid)) is Turn.MOVED:
                pass
            if turn is not Turn.NOTHING:
                woken.set()  # there is room for another one; after a failure the poll is soon enough
        except Fault as error:
            log.warning("machine step interrupted", machine=uid, why=error.context or error.message)
        except Exception:  # one poisoned machine must not stop the others
            log.exception("machine step failed", machine=uid)
        finally:
            self._driven.pop(uid, None)

    async def _wait(self, stop: asyncio.Event, woken: asyncio.Event, pause: timedelta) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, woken)]
        try:
            await asyncio.wait(
                waits, timeout=pause.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waits, return_exceptions=True)
