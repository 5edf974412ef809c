"""The life of a workload's process: it works until it is done, refused, unheard, fenced or asked to go.

SIGTERM asks to hand over; SIGINT, or a second SIGTERM, asks to stop now.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from engine.process.exit_codes import Exit, Fenced, HostEnded, Incompatible
from engine.process.lease import Lease
from fsm.launch.client import Session
from fsm.launch.protocol import INCOMPATIBLE
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault

log = telemetry.get(__name__)

FAREWELL = 2.0  # seconds for each of the last two words
CANCEL_LIMIT = 5.0  # seconds for work that is broken off; all together below ten

Work = Callable[[asyncio.Event], Awaitable[None]]
Report = Callable[[], Mapping[str, Any]]
Hurry = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class StopSignals:
    """What we were asked for from outside."""

    leave: asyncio.Event = field(default_factory=asyncio.Event)
    now: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.ask)
        loop.add_signal_handler(signal.SIGINT, self.hurry)

    def ask(self) -> None:
        (self.now if self.leave.is_set() else self.leave).set()

    def hurry(self) -> None:
        self.now.set()
        self.leave.set()


@dataclass(frozen=True, kw_only=True)
class ProcessLifecycle:
    session: Session
    api: Lease
    control: Lease
    orders: StopSignals
    clock: Clock
    grace: timedelta  # for work that was asked to end by itself
    promise: str  # what a success without hurry says of itself: handover or drained

    async def run(self, work: Work, report: Report, hurry: Hurry) -> Exit:
        """`hurry` is what a stop in a hurry leaves behind, once nothing is at work any more."""
        stop, over = asyncio.Event(), asyncio.Event()

        async def begin() -> None:
            await self.session.running(report())
            self.session.tell(report)
            await work(stop)

        async with asyncio.TaskGroup() as group:
            leases = [group.create_task(lease.run()) for lease in (self.api, self.control)]
            working = asyncio.create_task(begin())
            working.add_done_callback(lambda _: over.set())
            try:
                await any_of(over, self.orders.leave, *self._losses)
                if not over.is_set() and self.orders.leave.is_set():
                    stop.set()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self.grace.total_seconds()):
                            await any_of(over, self.orders.now, *self._losses)
            finally:
                await _break_off(working)
                for lease in leases:
                    lease.cancel()
            return await self._conclude(working, hurry)

    @property
    def _losses(self) -> tuple[asyncio.Event, ...]:
        return self.session.lost, self.api.expired, self.control.expired

    async def _conclude(self, working: asyncio.Task[None], hurry: Hurry) -> Exit:
        """Losses first: whoever is refused has no last word."""
        if self.api.expired.is_set():
            log.warning("nobody heard us: we stop", patience=self.api.patience.total_seconds())
            return Exit.LOST
        if self.session.lost.is_set():
            log.info("we are refused: we stop", why=self.session.why)
            return Exit.REFUSED
        if self.control.expired.is_set():
            patience = self.control.patience.total_seconds()
            await self._fail(f"ControlDatabaseUnavailable: away for {patience:g} s.")
            return Exit.LOST
        error = None
        if working.done() and not working.cancelled():
            error = working.exception()
        if error is None and self.orders.now.is_set():
            await self._say(hurry())
        return await self._verdict(error)

    async def _verdict(self, error: BaseException | None) -> Exit:
        match error:
            case None:
                kept = not self.orders.now.is_set()
                log.info("we end as asked", **{self.promise: kept})
                await self._say(self.session.success({self.promise: kept}))
                return Exit.DONE
            case Fenced():
                log.info("a newer epoch is in charge: we stop")
                await self._fail(f"Superseded: {error.message}.")
                return Exit.FENCED
            case Incompatible():
                log.error("versions do not fit", why=error.message)
                await self._fail(f"{INCOMPATIBLE}{error.message}.")
                return Exit.INCOMPATIBLE
            case HostEnded():
                log.warning("our registration is over: we stop")
                await self._fail(f"{error.code}: {error.message}.")
                return Exit.REFUSED
            case Fault():
                log.error("we can't go on", why=error.message, more=error.context)
                await self._fail(f"{error.code}: {error.message}")
            case _:
                log.error("we broke down", exc_info=error)
                await self._fail(f"InternalServerError: {type(error).__name__}.")
        return Exit.FAILED

    async def _fail(self, message: str) -> None:
        await self._say(self.session.failure(message))

    async def _say(self, word: Awaitable[None]) -> None:
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await word


async def any_of(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _break_off(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_LIMIT)
    if not task.done():
        log.error("work that was broken off does not end")
    elif not task.cancelled():
        task.exception()  # looked at: whoever has no last word has no use for it
