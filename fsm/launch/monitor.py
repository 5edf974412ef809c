"""Fails what waited too long: not claimed, not started, silent, too old.

It runs in every process that has a reason to, under one lock, and never trusts its own absence: after
a gap in its rounds, or in those of the Workload API, every workload has one full silent period first.
"""

import asyncio
from dataclasses import dataclass, field

from asyncpg import PostgresError

from fsm.launch import claims
from fsm.launch.protocol import Reason
from fsm.launch.queue import Queue
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Connection, Database, Row
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("fsm.launch.sql", "monitor.sql")
log = telemetry.get(__name__)

LOCK = 0x6D75736D  # one process at a time judges
MONITOR, API = "monitor", "api"
MOST = 1000  # of one round

SAID = {
    Reason.NOT_CLAIMED: ("claim", "It could not start in time: no launcher of its group runs."),
    Reason.NOT_STARTED: ("start", "It could not start in time: its launcher did not start it."),
    Reason.SILENT: ("heartbeat", "It sent no heartbeat: it hangs, or ended without a result."),
    Reason.TOO_OLD: ("timeout", "It ran for too long."),
}


@dataclass(frozen=True)
class Monitor:
    db: Database
    queue: Queue
    clock: Clock = field(default_factory=Clock)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.sweep()
            except Fault as error:
                log.warning("monitor check interrupted", why=error.context or error.message)
            await self.clock.sleep_or(stop, self.queue.settings.monitor_sweep)

    async def sweep(self) -> int:
        """One round; how many were failed. 0 as well while another process does it."""
        async with self.db.connection() as connection:
            if not await connection.fetchval(Q.try_monitor, LOCK):
                return 0
            try:
                return await self._round(connection)
            finally:
                await connection.execute(Q.leave_monitor, LOCK)

    async def _round(self, connection: Connection) -> int:
        settings = self.queue.settings
        await tick(connection, self.queue, MONITOR)
        failed = 0
        gap = settings.workload_silent / 2
        rows = await connection.fetch(Q.overdue, settings.workload_claim_limit, gap, MOST)
        for row in rows:
            failed += await self._fail(row)
        await claims.clean(connection, settings)
        return failed

    async def _fail(self, row: Row) -> bool:
        """In a transaction of its own: one row that can't be failed stops no other."""
        reason = Reason(row["reason"])
        source, message = SAID[reason]
        try:
            async with self.db.transaction() as tx:
                if await tx.fetchrow(Q.hold_overdue, row["id"], row["state"]) is None:
                    return False
                source = f"workload-monitor-{source}"
                await self.queue.failure(
                    tx, row["id"], reason=reason, source=source, message=message
                )
        except (Fault, PostgresError) as error:
            log.warning("an overdue workload can't be failed", workload=row["id"], exc_info=error)
            return False
        log.warning("workload failed", workload=row["id"], why=reason)
        return True


async def tick(db: Connection | Database, queue: Queue, name: str) -> None:
    """Says that `name` is awake; a gap of half a silent period means that it was not."""
    silent = queue.settings.workload_silent
    await db.execute(Q.tick, name, silent / 2, silent)


async def keep_ticking(db: Database, queue: Queue, clock: Clock, stop: asyncio.Event) -> None:
    """For the process that serves the Workload API: while it is away, silence proves nothing."""
    while not stop.is_set():
        try:
            await tick(db, queue, API)
        except Fault as error:
            log.warning("can't record that the Workload API is alive", why=error.context)
        await clock.sleep_or(stop, queue.settings.monitor_sweep)
