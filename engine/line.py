"""A session of its own to the control database, for what is said often: one statement, one transaction.

A call is one round trip. The limits of `Store.calling` are set once, when the session opens; plans do
not depend on how full the tables were when they were last looked at.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from engine.store import LIMIT, Q, Store, told_as_faults
from muster.core.db import Connection, Row

IDLE = 60.0  # seconds; a server has many accounts


class Line:
    """Used by one after the other; a session in which something went wrong is not used again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: Connection | None = None
        self._turn = asyncio.Lock()
        self._expiry: asyncio.TimerHandle | None = None
        self._uses = 0

    async def fetch(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        async with self._at_hand(limit) as session:
            return await session.fetch(query, *args)

    async def value(self, query: str, *args: Any, limit: float | None = None) -> Any:
        async with self._at_hand(limit) as session:
            return await session.fetchval(query, *args)

    def hang_up(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._session is not None:
            self._session.terminate()
            self._session = None

    @contextlib.asynccontextmanager
    async def _at_hand(self, limit: float | None) -> AsyncIterator[Connection]:
        async with self._turn:
            self._uses += 1
            with told_as_faults():
                async with asyncio.timeout(limit or LIMIT):
                    try:
                        if self._session is None or self._session.is_closed():
                            self._session = await self._store.open_session()
                            await self._session.execute(Q.preset)
                        yield self._session
                    except BaseException:
                        self.hang_up()
                        raise
            if self._expiry is None:
                self._look_again()

    def _look_again(self) -> None:
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(IDLE, self._end_unused, self._uses)

    def _end_unused(self, uses: int) -> None:
        if uses == self._uses and not self._turn.locked():
            self.hang_up()
        else:
            self._look_again()
