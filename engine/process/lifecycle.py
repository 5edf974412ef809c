"""The life of a workload's process: until it is done, refused, fenced or asked to stop, or a lease expires.

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

LAST_REPORT_TIMEOUT = 2.0  # seconds for each of the last two reports
CANCEL_TIMEOUT = 5.0  # seconds for cancelled work; all timeouts together are below ten

Work = Callable[[asyncio.Event], Awaitable[None]]
Report = Callable[[], Mapping[str, Any]]
Hurry = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class StopSignals:
    """Requests by signals: to hand over, or to stop now."""

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
    stop_signals: StopSignals
    clock: Clock
    grace: timedelta  # for work that ends by itself after a request
    completion_label: (
        str  # key of the result that says whether it ended in time: handover or drained
    )

    async def run(self, work: Work, report: Report, hurry: Hurry) -> Exit:
        """`hurry` is called after the work has ended because of a request to stop now."""
        stop, finished = asyncio.Event(), asyncio.Event()

        async def begin() -> None:
            await self.session.running(report())
            self.session.tell(report)
            await work(stop)

        async with asyncio.TaskGroup() as group:
            leases = [group.create_task(lease.run()) for lease in (self.api, self.control)]
            working = asyncio.create_task(begin())
            working.add_done_callback(lambda _: finished.set())
            try:
                await any_of(finished, self.stop_signals.leave, *self._losses)
                if not finished.is_set() and self.stop_signals.leave.is_set():
                    stop.set()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self.grace.total_seconds()):
                            await any_of(finished, self.stop_signals.now, *self._losses)
            finally:
                await _cancel(working)
                for lease in leases:
                    lease.cancel()
            return await self._conclude(working, hurry)

    @property
    def _losses(self) -> tuple[asyncio.Event, ...]:
        return self.session.lost, self.api.expired, self.control.expired

    async def _conclude(self, working: asyncio.Task[None], hurry: Hurry) -> Exit:
        """Checks lost leases first: a refused process must not report an outcome."""
        if self.api.expired.is_set():
            log.warning(
                "stopping: the Workload API was unreachable for too long",
                patience=self.api.patience.total_seconds(),
            )
            return Exit.LOST
        if self.session.lost.is_set():
            log.info("stopping: the control plane refused this workload", why=self.session.why)
            return Exit.REFUSED
        if self.control.expired.is_set():
            patience = self.control.patience.total_seconds()
            await self._fail(f"ControlDatabaseUnavailable: unavailable for {patience:g} s.")
            return Exit.LOST
        error = None
        if working.done() and not working.cancelled():
            error = working.exception()
        if error is None and self.stop_signals.now.is_set():
            await self._send(hurry())
        return await self._verdict(error)

    async def _verdict(self, error: BaseException | None) -> Exit:
        match error:
            case None:
                in_time = not self.stop_signals.now.is_set()
                log.info("stopped as requested", **{self.completion_label: in_time})
                await self._send(self.session.success({self.completion_label: in_time}))
                return Exit.DONE
            case Fenced():
                log.info("stopping: a newer epoch is current")
                await self._fail(f"Superseded: {error.message}.")
                return Exit.FENCED
            case Incompatible():
                log.error("this version does not support the schema", why=error.message)
                await self._fail(f"{INCOMPATIBLE}{error.message}.")
                return Exit.INCOMPATIBLE
            case HostEnded():
                log.warning("stopping: the registration of this host has ended")
                await self._fail(f"{error.code}: {error.message}.")
                return Exit.REFUSED
            case Fault():
                log.error("stopping after an error", why=error.message, more=error.context)
                await self._fail(f"{error.code}: {error.message}")
            case _:
                log.error("stopping after an internal error", exc_info=error)
                await self._fail(f"InternalServerError: {type(error).__name__}.")
        return Exit.FAILED

    async def _fail(self, message: str) -> None:
        await self._send(self.session.failure(message))

    async def _send(self, report: Awaitable[None]) -> None:
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(LAST_REPORT_TIMEOUT):
                await report


async def any_of(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_TIMEOUT)
    if not task.done():
        log.error("cancelled work does not end")
    elif not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it
