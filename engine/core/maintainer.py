"""Maintains the account: ends the registration of lost hosts, repairs system jobs, and performs them.

A system job that was edited or deleted is repaired with the next sweep. It has no steps or targets: its duty
is performed here, and recorded as a run.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from engine.context.core_context import CoreContext
from engine.core.maintenance import Duty, Maintenance, Q
from engine.core.service import Service
from engine.db import membership
from engine.process.exit_codes import FINAL
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)

HISTORY = "muster history retention"
PARTITIONS = "muster partitions"
LOST_TASKS = "muster lost tasks"
STATISTICS = "muster statistics"
QUIET = frozenset(
    {LOST_TASKS, STATISTICS}
)  # frequent: no run is recorded when there was nothing to do
SWEEP_INTERVAL = timedelta(seconds=10)
DUTY_TIMEOUT = 1800.0  # seconds


class Maintainer(Service):
    """A host is lost when it had no heartbeat for its patience, counted only while the core could read it.

    So after an outage of the control database every host has its full time to write the next one.
    """

    name = "maintainer"

    def __init__(self, context: CoreContext, duties: Mapping[str, Duty] | None = None) -> None:
        super().__init__(context)
        self._reads = context.cluster_state.reads
        self._polled_at = context.clock.monotonic()
        self._silence: dict[UUID, tuple[datetime, float]] = {}  # last heartbeat, seconds since then
        maintenance = Maintenance(context.store)
        self.duties: dict[str, Duty] = {
            HISTORY: maintenance.prune_history,
            PARTITIONS: maintenance.create_partitions,
            STATISTICS: maintenance.analyze_tables,
            LOST_TASKS: self._report_lost_tasks,
            **(duties or {}),
        }
        self._swept_at: float | None = None
        self._blocked: dict[
            str, str
        ] = {}  # differences that can't be repaired, by job; each is logged once
        self._duty_tasks: dict[UUID, asyncio.Task[None]] = {}  # by system job
        self._group = asyncio.TaskGroup()

    async def run(self, stop: asyncio.Event) -> None:
        try:
            async with self._group:
                await super().run(stop)
                for task in list(self._duty_tasks.values()):
                    task.cancel()
        except BaseExceptionGroup as several:
            final = [error for error in several.exceptions if isinstance(error, FINAL)]
            raise [*final, *several.exceptions][0] from None

    async def run_once(self) -> None:
        await self._end_lost_hosts()
        now = self.context.clock.monotonic()
        if self._swept_at is None or now - self._swept_at >= self._sweep_interval.total_seconds():
            await self._sweep()
            self._swept_at = now
        self.status = f"performs {len(self._duty_tasks)} duties" if self._duty_tasks else "idle"

    @property
    def _sweep_interval(self) -> timedelta:
        return min(SWEEP_INTERVAL, 10 * self.context.heartbeat)

    async def _end_lost_hosts(self) -> None:
        cluster_state = self.context.cluster_state
        if cluster_state.reads == self._reads:
            return
        now = self.context.clock.monotonic()
        seconds = min(now - self._polled_at, 2 * self.pause.total_seconds())
        self._reads, self._polled_at = cluster_state.reads, now
        self._silence = {
            id: (host.heartbeat_at, self._silence_of(id, host.heartbeat_at, seconds))
            for id, host in cluster_state.hosts.items()
        }
        limit = (self.context.host_patience + 2 * self.pause).total_seconds()
        for id, (_, silent) in self._silence.items():
            if silent > limit:
                await membership.end_lost_host(self.context.store, id)
                log.warning("ended lost host", host=id, silent=round(silent))

    def _silence_of(self, id: UUID, beat: datetime, seconds: float) -> float:
        before, silent = self._silence.get(id, (None, 0.0))
        return silent + seconds if before == beat else 0.0

    async def _report_lost_tasks(self) -> str | None:
        """The Communicator resolves them as soon as their host is lost; this records the number."""
        cluster_state = self.context.cluster_state
        number, cluster_state.settled = cluster_state.settled, 0
        return f"{number} tasks of lost hosts settled." if number else None

    async def _sweep(self) -> None:
        """Repairs system jobs and starts the duties that are due."""
        store = self.context.store
        async with store.calling() as tx:
            differed = await tx.fetch(Q.keep_system_jobs, store.epoch)
            due = await tx.fetch(Q.due_duties, store.epoch, list(self._duty_tasks))
        for row in differed:
            self._log_repair(row["job_name"], row["differed"], repaired=row["repaired"])
        if self.context.cluster_state.beat.draining:
            return
        if self._swept_at is None and (made := await self.duties[PARTITIONS]()):
            log.info("created partitions", what=made)
        for row in due:
            if (duty := self.duties.get(row["job_name"])) is not None:
                work = self._perform_and_record(row["job_id"], row["job_name"], duty)
                self._duty_tasks[row["job_id"]] = self._group.create_task(work)

    def _log_repair(self, job: str, differed: str, *, repaired: bool) -> None:
        if repaired:
            self._blocked.pop(job, None)
            log.warning("repaired system job", job=job, differed=differed)
        elif self._blocked.get(job) != differed:
            self._blocked[job] = differed
            log.error(
                "system job can't be repaired: its name is taken or its row is locked",
                job=job,
                differed=differed,
            )

    async def _perform_and_record(self, job: UUID, name: str, duty: Duty) -> None:
        """A duty that fails is recorded and due again; only a final error ends the Maintainer."""
        run, quiet = uuid4(), name in QUIET
        try:
            if await self._begin(job, None if quiet else run):
                lifecycle, message = await self._perform(name, duty)
                if message is not None or not quiet:
                    await self._end(job, run, lifecycle, message or "There was nothing to do.")
        except FINAL:
            raise
        except Fault as fault:
            log.warning("maintenance duty waits", duty=name, why=fault.message, more=fault.context)
        finally:
            del self._duty_tasks[job]

    async def _perform(self, name: str, duty: Duty) -> tuple[str, str | None]:
        try:
            async with asyncio.timeout(DUTY_TIMEOUT):
                return "Succeeded", await duty()
        except FINAL:
            raise
        except Fault as fault:
            log.warning("maintenance duty failed", duty=name, why=fault.message, more=fault.context)
            return "Failed", f"It failed: {fault.message}"
        except Exception as error:
            log.exception("maintenance duty failed", duty=name)
            return "Failed", f"It failed: {type(error).__name__}."

    async def _begin(self, job: UUID, run: UUID | None) -> bool:
        store = self.context.store
        async with store.calling() as tx:
            return bool(await tx.fetchval(Q.begin_duty, store.epoch, job, run))

    async def _end(self, job: UUID, run: UUID, lifecycle: str, message: str) -> None:
        store = self.context.store
        async with store.calling() as tx:
            await tx.execute(Q.end_duty, store.epoch, job, run, lifecycle, message)
