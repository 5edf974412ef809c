"""Housekeeping beside the machines: starts embedded clusters, removes leftovers, deletes old answers."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from fsm import commands
from fsm.context import Services
from fsm.store import Resource, resource_of
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("fsm.sql", "housekeeping.sql")
log = telemetry.get(__name__)

LOCK = 0x6D757364  # advisory lock: one process at a time starts and removes clusters
TOGETHER = 4  # clusters that are started at the same time
ANSWERS_KEPT = timedelta(hours=24)


@dataclass(frozen=True)
class Housekeeping:
    services: Services
    first_pass: asyncio.Event = field(default_factory=asyncio.Event)  # ended, well or not

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.once()
            except (Fault, OSError) as error:
                log.warning("housekeeping interrupted", exc_info=error)
            finally:
                self.first_pass.set()
            await self.services.clock.sleep_or(stop, self.services.settings.sweep)

    async def once(self) -> None:
        db = self.services.db
        await db.execute(Q.forget_answers, ANSWERS_KEPT)
        await db.execute(commands.Q.forget_commands, ANSWERS_KEPT)
        if self.services.clusters is None:
            return
        async with db.connection() as connection:
            if await connection.fetchval(Q.try_lock, LOCK):
                try:
                    await self._revive()
                    await self._remove_leftovers()
                    await connection.execute(Q.unlock, LOCK)
                except BaseException:
                    connection.terminate()  # the pool resets nothing: the lock goes with its session
                    raise

    async def _revive(self) -> None:
        """After a crash of a postmaster, or of everything, all clusters come back."""
        room = asyncio.Semaphore(TOGETHER)
        async with asyncio.TaskGroup() as group:
            for row in await self.services.db.fetch(Q.embedded_servers):
                group.create_task(self._start(resource_of(row), room))

    async def _start(self, server: Resource, room: asyncio.Semaphore) -> None:
        clusters = self.services.clusters
        assert clusters is not None
        async with room:
            try:
                if not await clusters.running(server.uid):
                    port = await clusters.start(server.uid)
                    await self.services.db.execute(Q.set_port, server.uid, port)
                    log.info("cluster started", server=server.id, port=port)
            except (Fault, OSError) as error:
                log.warning("can't start cluster", server=server.id, why=str(error))

    async def _remove_leftovers(self) -> None:
        """Only clusters of ended machines; an unknown folder may be a customer's data."""
        clusters = self.services.clusters
        assert clusters is not None
        ended = await self.services.db.fetch(Q.ended_machines, clusters.known())
        for row in ended:
            log.warning("removing a leftover cluster", cluster=row["uid"])
            await clusters.destroy(row["uid"])
