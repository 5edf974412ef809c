"""The things a launcher does with one workload; each may be broken off and done again."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from fsm.launch.protocol import Kind, Start, State
from fsm.launch.queue_client import Desk
from fsm.launch.runtime import Handle, Runtime, StartFailed
from fsm.launch.workload import Workload, seal_context
from muster.core import telemetry
from muster.core.errors import Fault, NotFound, Unavailable
from muster.core.failpoints import reach
from muster.core.secrets import Keyring
from muster.core.settings import Settings

log = telemetry.get(__name__)

DRAIN = timedelta(seconds=4)  # for a process that is told to stop now; `muster up` has 10 s in all


def workload_url(settings: Settings) -> str:
    """How processes reach the Workload API."""
    return settings.internal_url or f"http://{settings.internal_listen}"


@dataclass(frozen=True, kw_only=True)
class Hands:
    desk: Desk
    runtime: Runtime
    settings: Settings
    keyring: Keyring
    url: str  # of the Workload API, for the processes

    async def start(self, workload: Workload) -> Handle | None:
        """What runs for it now; None when nothing does. The intent is recorded before the deed."""
        await reach("launch.claimed", workload.kind)
        armed = await self.desk.arm(workload.id)
        if armed is None:
            return None
        await reach("launch.armed", workload.kind)
        try:
            handle = await self.runtime.start(self._order(*armed))
        except StartFailed as error:
            log.warning("can't start workload", workload=workload.id, why=error.message)
            await self.desk.start_failed(workload.id, error.message)
            self.runtime.forget(workload.id)
            return None
        await reach("launch.started", workload.kind)
        log.info("workload started", workload=workload.id, kind=workload.kind)
        return handle

    async def report(self, handle: Handle) -> None:
        """It runs; and if nobody wants that any more, it ends."""
        if not await self.desk.launched(handle.id):
            await self.stop(handle)

    async def stop(self, handle: Handle) -> None:
        await self.runtime.stop(handle, self.settings.workload_stop_grace)
        await reach("launch.stopped")
        if self.runtime.find(handle.id) is not None:
            raise Unavailable("The process does not end, not even by SIGKILL.")
        await self.gone(handle.id)

    async def see_off(self, handle: Handle) -> None:
        """It said itself that it is over: it may close its door, and only then is it pushed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.workload_stop_grace.total_seconds()):
                await self.runtime.ended(handle)
        await self.stop(handle)

    async def gone(self, id: UUID) -> None:
        """Over first, so that nobody starts it again; then its files go; then nothing is left."""
        code = self.runtime.exit_code(id)
        with suppress(NotFound):
            await self.desk.exited(id, code)
            self.runtime.forget(id)
            await self.desk.gone(id, code)
        self.runtime.forget(id)

    async def end_unknown(self, id: UUID) -> None:
        """Left by a workload whose row is gone, or another's by now: nobody wants it."""
        handle = self.runtime.find(id)
        if handle is not None:
            log.warning("ended a process without a workload", workload=id)
            await self.runtime.stop(handle, self.settings.workload_stop_grace)
        self.runtime.forget(id)

    async def drain(self) -> None:
        """Ends all that runs here, also while the database is away; what only waited goes back."""
        await asyncio.gather(*(self._drain(id) for id in self.runtime.known()))
        with suppress(Fault):
            for workload in await self.desk.mine():
                if workload.state is State.CLAIMED:
                    await self.desk.release(workload.id)

    async def _drain(self, id: UUID) -> None:
        handle = self.runtime.find(id)
        if handle is not None:
            await self.runtime.stop(handle, DRAIN, now=True)
        with suppress(Fault):  # the next launcher finds the row and no process, and says so
            await self.desk.drained(id)
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
