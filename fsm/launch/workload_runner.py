"""Starts, stops and reports one workload; each of these may be interrupted and repeated."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from fsm.launch.protocol import Kind, Start, State
from fsm.launch.queue_client import QueueClient
from fsm.launch.runtime import Handle, Runtime, StartFailed
from fsm.launch.workload import Workload, seal_context
from muster.core import telemetry
from muster.core.errors import Fault, NotFound, Unavailable
from muster.core.failpoints import reach
from muster.core.secrets import Keyring
from muster.core.settings import Settings

log = telemetry.get(__name__)

DRAIN = timedelta(seconds=4)  # for a process that must stop now; `muster up` has 10 s in all


def workload_url(settings: Settings) -> str:
    """How processes reach the Workload API."""
    return settings.internal_url or f"http://{settings.internal_listen}"


@dataclass(frozen=True, kw_only=True)
class WorkloadRunner:
    queue_client: QueueClient
    runtime: Runtime
    settings: Settings
    keyring: Keyring
    url: str  # of the Workload API, for the processes

    async def start(self, workload: Workload) -> Handle | None:
        """The running process; None if there is none. The intent is recorded before the start."""
        await reach("launch.claimed", workload.kind)
        armed = await self.queue_client.arm(workload.id)
        if armed is None:
            return None
        await reach("launch.armed", workload.kind)
        try:
            handle = await self.runtime.start(self._order(*armed))
        except StartFailed as error:
            log.warning("can't start workload", workload=workload.id, why=error.message)
            await self.queue_client.start_failed(workload.id, error.message)
            self.runtime.forget(workload.id)
            return None
        await reach("launch.started", workload.kind)
        log.info("workload started", workload=workload.id, kind=workload.kind)
        return handle

    async def report(self, handle: Handle) -> None:
        """Reports that it runs; stops it if the workload was cancelled meanwhile."""
        if not await self.queue_client.launched(handle.id):
            await self.stop(handle)

    async def stop(self, handle: Handle) -> None:
        await self.runtime.stop(handle, self.settings.workload_stop_grace)
        await reach("launch.stopped")
        if self.runtime.find(handle.id) is not None:
            raise Unavailable("The process does not end, not even by SIGKILL.")
        await self.gone(handle.id)

    async def await_exit_then_stop(self, handle: Handle) -> None:
        """For a process that reported its own end: waits for its exit, then stops it by force."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.workload_stop_grace.total_seconds()):
                await self.runtime.ended(handle)
        await self.stop(handle)

    async def gone(self, id: UUID) -> None:
        """Records the end first, so that it is not started again; then removes its files."""
        code = self.runtime.exit_code(id)
        with suppress(NotFound):
            await self.queue_client.exited(id, code)
            self.runtime.forget(id)
            await self.queue_client.gone(id, code)
        self.runtime.forget(id)

    async def end_unknown(self, id: UUID) -> None:
        """Ends the process of a workload whose row is deleted or belongs to another launcher."""
        handle = self.runtime.find(id)
        if handle is not None:
            log.warning("ended a process without a workload", workload=id)
            await self.runtime.stop(handle, self.settings.workload_stop_grace)
        self.runtime.forget(id)

    async def drain(self) -> None:
        """Ends all processes, also while the database is unavailable; releases unstarted claims."""
        await asyncio.gather(*(self._drain(id) for id in self.runtime.known()))
        with suppress(Fault):
            for workload in await self.queue_client.mine():
                if workload.state is State.CLAIMED:
                    await self.queue_client.release(workload.id)

    async def _drain(self, id: UUID) -> None:
        handle = self.runtime.find(id)
        if handle is not None:
            await self.runtime.stop(handle, DRAIN, now=True)
        with suppress(Fault):  # the next launcher finds the row and no process, and says so
            await self.queue_client.drained(id)
            await self.gone(id)

    def _order(self, workload: Workload, token: str) -> Start:
        patience = self.settings.workload_silent
        if workload.kind is Kind.HOST:
            patience = self.settings.host_patience
        return Start(
            id=workload.id,
            kind=workload.kind,
            url=self.url,
            token=token,
            heartbeat=self.settings.workload_heartbeat.total_seconds(),
            patience=patience.total_seconds(),
            epoch=workload.epoch,
            account_uid=workload.account_uid,
            attempt=workload.attempt,
            spec=workload.spec,
            secrets={
                name: self.keyring.open(sealed, seal_context(workload.id, name)).reveal()
                for name, sealed in workload.sealed.items()
            },
        )
