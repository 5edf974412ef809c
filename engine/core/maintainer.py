"""Keeps the account's own things in order: hosts that must have ended are seen off, system jobs stay as they are.

A system job that somebody edited or deleted is repaired with the next sweep. Its duty is done here, without
steps or targets, and leaves a run that tells what was done.
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
QUIET = frozenset({LOST_TASKS, STATISTICS})  # so frequent that they only tell what they did
SWEEP = timedelta(seconds=10)
LONGEST = 1800.0  # seconds for a duty


class Maintainer(Service):
    """A host is lost when it was silent for all of its patience, counted only while we could look.

    So after an outage of the control database every host has its full time to come back.
    """

    name = "maintainer"

    def __init__(self, context: CoreContext, duties: Mapping[str, Duty] | None = None) -> None:
        super().__init__(context)
        self._reads = context.cluster_state.reads
        self._looked = context.clock.monotonic()
        self._silent: dict[UUID, tuple[datetime, float]] = {}  # last beat, seconds since then
        upkeep = Maintenance(context.store)
        self.duties: dict[str, Duty] = {
            HISTORY: upkeep.forget_history,
            PARTITIONS: upkeep.make_room,
            STATISTICS: upkeep.count_tables,
            LOST_TASKS: self._tell_of_lost_tasks,
            **(duties or {}),
        }
        self._swept: float | None = None
        self._blocked: dict[str, str] = {}  # what can't be repaired, told once
        self._busy: dict[UUID, asyncio.Task[None]] = {}  # by system job
        self._group = asyncio.TaskGroup()

    async def run(self, stop: asyncio.Event) -> None:
        try:
            async with self._group:
                await super().run(stop)
                for task in list(self._busy.values()):
                    task.cancel()
        except BaseExceptionGroup as several:
            final = [error for error in several.exceptions if isinstance(error, FINAL)]
            raise [*final, *several.exceptions][0] from None

    async def run_once(self) -> None:
        await self._look_for_hosts()
        now = self.context.clock.monotonic()
        if self._swept is None or now - self._swept >= self._every.total_seconds():
            await self._sweep()
            self._swept = now
        self.status = f"does {len(self._busy)} duties" if self._busy else "idle"

    @property
    def _every(self) -> timedelta:
        return min(SWEEP, 10 * self.context.heartbeat)

    async def _look_for_hosts(self) -> None:
        cluster_state = self.context.cluster_state
        if cluster_state.reads == self._reads:
            return
        now = self.context.clock.monotonic()
        passed = min(now - self._looked, 2 * self.pause.total_seconds())
        self._reads, self._looked = cluster_state.reads, now
        self._silent = {
            id: (host.heartbeat_at, self._since(id, host.heartbeat_at, passed))
            for id, host in cluster_state.hosts.items()
        }
        limit = (self.context.host_patience + 2 * self.pause).total_seconds()
        for id, (_, silent) in self._silent.items():
            if silent > limit:
                await membership.end_lost_host(self.context.store, id)
                log.warning("a lost host was seen off", host=id, silent=round(silent))

    def _since(self, id: UUID, beat: datetime, passed: float) -> float:
        before, silent = self._silent.get(id, (None, 0.0))
        return silent + passed if before == beat else 0.0

    async def _tell_of_lost_tasks(self) -> str | None:
        """The Communicator settles them as soon as it misses their host; here it is recorded."""
        cluster_state = self.context.cluster_state
        number, cluster_state.settled = cluster_state.settled, 0
        return f"{number} tasks of lost hosts settled." if number else None

    async def _sweep(self) -> None:
        """System jobs are as they must be, and what is due is being done."""
        store = self.context.store
        async with store.calling() as tx:
            differed = await tx.fetch(Q.keep_system_jobs, store.epoch)
            due = await tx.fetch(Q.due_duties, store.epoch, list(self._busy))
        for row in differed:
            self._tell(row["job_name"], row["differed"], repaired=row["repaired"])
        if self.context.cluster_state.beat.draining:
            return
        if self._swept is None and (made := await self.duties[PARTITIONS]()):
            log.info("room was made at the start", what=made)
        for row in due:
            if (duty := self.duties.get(row["job_name"])) is not None:
                work = self._do(row["job_id"], row["job_name"], duty)
                self._busy[row["job_id"]] = self._group.create_task(work)

    def _tell(self, job: str, differed: str, *, repaired: bool) -> None:
        if repaired:
            self._blocked.pop(job, None)
            log.warning("a system job was made or repaired", job=job, differed=differed)
        elif self._blocked.get(job) != differed:
            self._blocked[job] = differed
            log.error(
                "a system job can't be repaired: its name is taken or it is held",
                job=job,
                differed=differed,
            )

    async def _do(self, job: UUID, name: str, duty: Duty) -> None:
        """A duty that fails is recorded and comes again; only what is final ends the Maintainer."""
        run, quiet = uuid4(), name in QUIET
        try:
            if await self._begin(job, None if quiet else run):
                lifecycle, message = await self._perform(name, duty)
                if message is not None or not quiet:
                    await self._end(job, run, lifecycle, message or "There was nothing to do.")
        except FINAL:
            raise
        except Fault as fault:
            log.warning("a duty waits", duty=name, why=fault.message, more=fault.context)
        finally:
            del self._busy[job]

    async def _perform(self, name: str, duty: Duty) -> tuple[str, str | None]:
        try:
            async with asyncio.timeout(LONGEST):
                return "Succeeded", await duty()
        except FINAL:
            raise
        except Fault as fault:
            log.warning("a duty failed", duty=name, why=fault.message, more=fault.context)
            return "Failed", f"It failed: {fault.message}"
        except Exception as error:
            log.exception("a duty failed", duty=name)
            return "Failed", f"It failed: {type(error).__name__}."

    async def _begin(self, job: UUID, run: UUID | None) -> bool:
        store = self.context.store
        async with store.calling() as tx:
            return bool(await tx.fetchval(Q.begin_duty, store.epoch, job, run))

    async def _end(self, job: UUID, run: UUID, lifecycle: str, message: str) -> None:
        store = self.context.store
        async with store.calling() as tx:
            await tx.execute(Q.end_duty, store.epoch, job, run, lifecycle, message)
