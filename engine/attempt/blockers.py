"""Looks once, from a second session, who holds what a statement has waited for too long."""

import asyncio
import contextlib
from typing import Any

import asyncpg

from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

LIMIT = 3.0  # seconds for the look
SOON = 0.01  # seconds


class BlockerWatch:
    """Only where a connection is to spare: nobody waits for one, and the server's rate allows it."""

    def __init__(self, session: PooledConnection, name: str, patience: float) -> None:
        self._session = session
        self._name = name  # application_name of the attempt
        self._patience = patience
        self._since: float | None = None  # when the running statement was sent
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[list[dict[str, Any]]] | None = None

    def depart(self) -> None:
        self._since = self._session.loop.time()
        if not self._timer and not self._task:
            self._timer = self._session.loop.call_later(self._patience, self._wake)

    def land(self) -> None:
        self._since = None

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._task:
            self._task.cancel()

    async def seen(self) -> list[dict[str, Any]]:
        return await self._task if self._task else []

    def _wake(self) -> None:
        """One timer serves many short statements."""
        self._timer = None
        if self._since is None:
            return
        left = self._since + self._patience - self._session.loop.time()
        if left > SOON:
            self._timer = self._session.loop.call_later(left, self._wake)
        else:
            self._look()

    def _look(self) -> None:
        desk, now = self._session.desk, self._session.loop.time()
        free = not desk.waiters and not desk.spare.locked()
        if free and not desk.budget.opens_in(desk.server, now):
            desk.budget.opened(now)
            self._task = self._session.spawn(self._seen())

    async def _seen(self) -> list[dict[str, Any]]:
        with contextlib.suppress(TimeoutError, Fault, OSError, asyncpg.PostgresError):
            async with asyncio.timeout(LIMIT), self._session.beside() as other:
                pid = None if self._session.pooled else self._session.backend_pid
                return [dict(row) for row in await other.fetch(Q.blockers, pid, self._name)]
        return []
