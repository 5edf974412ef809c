"""A dedicated session to the control database, for frequent statements: each is a transaction of its own.

A call is one round trip: timeouts and planner switches are set once, when the session opens.
"""

import asyncio
from typing import Any

from asyncpg import PostgresError

from engine.db.control_db import TRANSACTION_TIMEOUT, ControlDatabase, Q, as_fault
from muster.core.db import Connection, Row
from muster.core.errors import Unavailable

IDLE_TIMEOUT = 60.0  # seconds; the sessions of many accounts share a server


class ControlConnection:
    """One call at a time. After an error, unless the database refused the statement, a new session is opened."""

    def __init__(self, store: ControlDatabase) -> None:
        self._store = store
        self._session: Connection | None = None
        self._lock = asyncio.Lock()
        self._expiry: asyncio.TimerHandle | None = None
        self._uses = 0

    async def fetch(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        async with self._lock:
            return await self._execute(query, args, limit)

    async def value(self, query: str, *args: Any) -> Any:
        async with self._lock:
            rows = await self._execute(query, args, None)
            return rows[0][0] if rows else None

    def disconnect(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._session is not None:
            self._session.terminate()
            self._session = None

    async def _execute(self, query: str, args: tuple[Any, ...], limit: float | None) -> list[Row]:
        """Without context managers: tasks wait for this call."""
        self._uses += 1
        try:
            if self._session is None or self._session.is_closed():
                async with asyncio.timeout(TRANSACTION_TIMEOUT):
                    await self._open()
            assert self._session is not None
            rows = await self._session.fetch(query, *args, timeout=limit or TRANSACTION_TIMEOUT)
        except BaseException as error:
            fault = as_fault(error)
            if isinstance(fault, Unavailable) or not isinstance(error, PostgresError):
                self.disconnect()  # else the statement was refused and rolled back: the session can be used again
            if fault is error:
                raise
            raise fault from error
        if self._expiry is None:
            self._schedule_expiry()
        return rows

    async def _open(self) -> None:
        session = await self._store.open_session()
        try:
            await session.execute(Q.session_settings)
        except BaseException:
            session.terminate()
            raise
        self._session = session

    def _schedule_expiry(self) -> None:
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(IDLE_TIMEOUT, self._disconnect_if_unused, self._uses)

    def _disconnect_if_unused(self, uses: int) -> None:
        if uses == self._uses and not self._lock.locked():
            self.disconnect()
        else:
            self._schedule_expiry()
