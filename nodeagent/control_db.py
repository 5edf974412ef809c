"""Sessions in control databases: bounded per database, each transaction guarded, errors as Faults."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from datetime import timedelta

from muster.core.clock import Clock
from muster.core.connect import Connector, Endpoint, close
from muster.core.db import Connection
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries
from muster.core.worker_thread import LARGE
from nodeagent.sqlstates import told_as_faults

Q = Queries("nodeagent.sql", "control.sql")
APPLICATION = "muster-nodeagent"
LONGEST = 20  # seconds: more than any command may take


@dataclass(frozen=True)
class Access:
    """An opened login. Another password is another access: a pooled session needs the same password."""

    endpoint: Endpoint
    database: str
    user: str
    password: Secret


@dataclass
class _Pool:
    slots: asyncio.Semaphore
    for_large: (
        asyncio.Semaphore
    )  # fewer: reads and cancellations of an account pass its large writes
    users: int = 0
    idle: list[tuple[Connection, float]] = field(default_factory=list)


class ControlDatabases:
    def __init__(self, connector: Connector, settings: Settings, clock: Clock) -> None:
        self._connector = connector
        self._settings = settings
        self._clock = clock
        self._pools: dict[Access, _Pool] = {}

    @contextlib.asynccontextmanager
    async def administer(
        self, access: Access, limit: timedelta, *, database: str | None = None
    ) -> AsyncIterator[Connection]:
        """One transaction in a session of its own: the administrator's are rare and never kept."""
        connection = await self._open(access, database or access.database)
        try:
            async with _guarded(connection, limit):
                yield connection
        except BaseException:
            connection.terminate()
            raise
        await close(connection)

    @contextlib.asynccontextmanager
    async def operate(
        self, access: Access, limit: timedelta, *, size: int = 0
    ) -> AsyncIterator[Connection]:
        """One transaction in a session that is used again, unless anything went wrong in it; `size` in bytes."""
        session = self._session(access, large=size > LARGE)
        async with session as connection, _guarded(connection, limit):
            yield connection

    @contextlib.asynccontextmanager
    async def look(self, access: Access) -> AsyncIterator[Connection]:
        """For a single statement that changes nothing: the session itself is guarded."""
        async with self._session(access) as connection:
            with told_as_faults():
                yield connection

    @contextlib.asynccontextmanager
    async def _session(self, access: Access, *, large: bool = False) -> AsyncIterator[Connection]:
        pool = self._pools.get(access)
        if pool is None:
            number = self._settings.node_agent_pool
            pool = _Pool(asyncio.Semaphore(number), asyncio.Semaphore(max(1, number // 2)))
            self._pools[access] = pool
        pool.users += 1
        try:
            async with pool.for_large if large else contextlib.nullcontext(), pool.slots:
                connection = _take(pool) or await self._open(access, access.database)
                try:
                    yield connection
                except BaseException:
                    connection.terminate()
                    raise
                pool.idle.append((connection, self._clock.monotonic()))
        finally:
            pool.users -= 1

    async def run(self, stop: asyncio.Event) -> None:
        """Closes unused sessions, until `stop`."""
        while not stop.is_set():
            await self._clock.sleep_or(stop, self._settings.node_agent_idle / 4)
            unused = self._settings.node_agent_idle.total_seconds()
            await self._sweep(before=self._clock.monotonic() - unused)

    async def close(self) -> None:
        await self._sweep(before=self._clock.monotonic())

    async def forget(self, users: Collection[str]) -> None:
        """The roles are going: no session of theirs stays open here."""
        for access in [access for access in self._pools if access.user in users]:
            for connection, _ in self._pools.pop(access).idle:
                await close(connection)

    async def _sweep(self, before: float) -> None:
        for access, pool in list(self._pools.items()):
            old = [each for each in pool.idle if each[1] <= before]
            pool.idle = [each for each in pool.idle if each[1] > before]
            if not pool.idle and not pool.users:
                self._pools.pop(access, None)
            for connection, _ in old:
                await close(connection)

    async def _open(self, access: Access, database: str) -> Connection:
        connection = await self._connector.open(
            access.endpoint.direct(),
            user=access.user,
            password=access.password,
            application_name=APPLICATION,
            database=database,
        )
        try:
            with told_as_faults():
                await connection.execute(Q.guard_session, f"{LONGEST * 1000}ms")
        except BaseException:
            connection.terminate()
            raise
        return connection


def _take(pool: _Pool) -> Connection | None:
    while pool.idle:
        connection, _ = pool.idle.pop()
        if not connection.is_closed():
            return connection
    return None


@contextlib.asynccontextmanager
async def _guarded(connection: Connection, limit: timedelta) -> AsyncIterator[None]:
    with told_as_faults():
        async with connection.transaction(isolation="read_committed"):
            await connection.execute(Q.guard, f"{int(limit.total_seconds() * 1000)}ms")
            yield
