"""A session of its own to the control database, for what is said often: one statement, one transaction.

A call is one round trip. The limits of `ControlDatabase.calling` are set once, when the session opens; plans do
not depend on how full the tables were when they were last looked at.
"""

import asyncio
from typing import Any

from asyncpg import PostgresError

from engine.db.control_db import LIMIT, ControlDatabase, Q, as_fault
from muster.core.db import Connection, Row
from muster.core.errors import Unavailable

IDLE = 60.0  # seconds; a server has many accounts


class ControlConnection:
    """Used by one after the other; a session in which more went wrong than a refusal is not used again."""

    def __init__(self, store: ControlDatabase) -> None:
        self._store = store
        self._session: Connection | None = None
        self._turn = asyncio.Lock()
        self._expiry: asyncio.TimerHandle | None = None
        self._uses = 0

    async def fetch(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        async with self._turn:
            return await self._say(query, args, limit)

    async def value(self, query: str, *args: Any) -> Any:
        async with self._turn:
            rows = await self._say(query, args, None)
            return rows[0][0] if rows else None

    def hang_up(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._session is not None:
            self._session.terminate()
            self._session = None

    async def _say(self, query: str, args: tuple[Any, ...], limit: float | None) -> list[Row]:
        """Leaner than it would be with a context for each of its duties: it is said while a task waits."""
        self._uses += 1
        try:
            if self._session is None or self._session.is_closed():
                async with asyncio.timeout(LIMIT):
                    await self._open()
            assert self._session is not None
            said = await self._session.fetch(query, *args, timeout=limit or LIMIT)
        except BaseException as error:
            fault = as_fault(error)
            if isinstance(fault, Unavailable) or not isinstance(error, PostgresError):
                self.hang_up()  # otherwise it was refused and undone, and that is all
            if fault is error:
                raise
            raise fault from error
        if self._expiry is None:
            self._look_again()
        return said

    async def _open(self) -> None:
        session = await self._store.open_session()
        try:
            await session.execute(Q.session_settings)
        except BaseException:
            session.terminate()
            raise
        self._session = session

    def _look_again(self) -> None:
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(IDLE, self._end_unused, self._uses)

    def _end_unused(self, uses: int) -> None:
        if uses == self._uses and not self._turn.locked():
            self.hang_up()
        else:
            self._look_again()
