"""Queries once, on a second connection, which sessions block a statement that waits too long."""

import asyncio
import contextlib
from typing import Any

import asyncpg

from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

QUERY_TIMEOUT = 3.0  # seconds
TIMER_TOLERANCE = 0.01  # seconds


class BlockerWatch:
    """Queries only if a connection is available: no task waits for one, and the server's rate allows it."""

    def __init__(self, session: PooledConnection, name: str, wait: float) -> None:
        self._session = session
        self._name = name  # application_name of the attempt
        self._wait = wait  # seconds
        self._since: float | None = None  # when the running statement was sent
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[list[dict[str, Any]]] | None = None

    def __enter__(self) -> None:
        """A statement is sent, and answered at the exit."""
        self._since = self._session.loop.time()
        if not self._timer and not self._task:
            self._timer = self._session.loop.call_later(self._wait, self._wake)

    def __exit__(self, *_: object) -> None:
        self._since = None

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._task:
            self._task.cancel()

    async def blockers(self) -> list[dict[str, Any]]:
        return await self._task if self._task else []

    def _wake(self) -> None:
        """One timer serves many short statements."""
        self._timer = None
        if self._since is None:
            return
        left = self._since + self._wait - self._session.loop.time()
        if left > TIMER_TOLERANCE:
            self._timer = self._session.loop.call_later(left, self._wake)
        else:
            self._start_query()

    def _start_query(self) -> None:
        server_pool, now = self._session.server_pool, self._session.loop.time()
        free = not server_pool.waiters and not server_pool.admin_slot.locked()
        if free and not server_pool.budget.opens_in(server_pool.server, now):
            server_pool.budget.opened(now)
            self._task = self._session.spawn(self._query())

    async def _query(self) -> list[dict[str, Any]]:
        with contextlib.suppress(TimeoutError, Fault, OSError, asyncpg.PostgresError):
            async with asyncio.timeout(QUERY_TIMEOUT), self._session.second_connection() as other:
                pid = None if self._session.pooled else self._session.backend_pid
                return [dict(row) for row in await other.fetch(Q.blockers, pid, self._name)]
        return []
