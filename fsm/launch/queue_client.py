"""The launcher's client of the workload queue: one transaction per call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fsm.launch import claims
from fsm.launch.protocol import Priority, Reason
from fsm.launch.queue import Q, Queue
from fsm.launch.tokens import start_token
from fsm.launch.workload import BY_LAUNCHER, Over, Workload
from muster.core.db import Database
from muster.core.errors import NotFound
from muster.core.version import VERSION


@dataclass(frozen=True, kw_only=True)
class QueueClient:
    db: Database
    queue: Queue
    name: str
    group: str
    home: UUID

    async def beat(self, capacity: Mapping[str, Any]) -> bool:
        """Writes the heartbeat; returns whether new workloads may be started."""
        registered = await claims.register(
            self.db,
            self.queue.settings,
            name=self.name,
            group=self.group,
            home=self.home,
            capacity=capacity,
            version=VERSION,
        )
        return registered.enabled

    async def mine(self) -> list[Workload]:
        return await claims.mine(self.db, self.name)

    async def take(self, priority: Priority) -> Workload | None:
        async with self.db.transaction() as tx:
            return await claims.take(
                tx, self.queue.settings, launcher=self.name, group=self.group, priority=priority
            )

    async def arm(self, id: UUID) -> tuple[Workload, str] | None:
        """The token for the start that follows; None: it is no longer ours to start."""
        token, digest = start_token(id)
        async with self.db.transaction() as tx:
            armed = await claims.arm(tx, id, launcher=self.name, digest=digest)
        return (armed, token) if armed else None

    async def launched(self, id: UUID) -> bool:
        """False: it must stop."""
        try:
            async with self.db.transaction() as tx:
                await self.queue.launched(tx, id)
        except (Over, NotFound):
            return False
        return True

    async def start_failed(self, id: UUID, message: str) -> None:
        async with self.db.transaction() as tx:
            await self.queue.failure(
                tx, id, reason=Reason.START_FAILED, source=BY_LAUNCHER, message=message
            )
            await self.queue.gone(tx, id, self.name)

    async def exited(self, id: UUID, exit_code: int | None) -> None:
        async with self.db.transaction() as tx:
            await self.queue.exited(tx, id, self.name, exit_code)

    async def gone(self, id: UUID, exit_code: int | None) -> None:
        async with self.db.transaction() as tx:
            await self.queue.gone(tx, id, self.name, exit_code)

    async def release(self, id: UUID) -> None:
        async with self.db.transaction() as tx:
            await claims.release(tx, self.queue.settings, id, launcher=self.name)

    async def drained(self, id: UUID) -> None:
        async with self.db.transaction() as tx:
            await self.queue.cancel(tx, id, Reason.DRAINED, source=BY_LAUNCHER)

    async def known(self, ids: Iterable[UUID]) -> set[UUID]:
        """Those that still have a row."""
        rows = await self.db.fetch(Q.known_workloads, list(ids))
        return {row["id"] for row in rows}
