"""A session at a target, lent to one attempt at a time; it can open a second connection with the same login."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

import asyncpg

from engine.access.errors import CONNECTION_LOST
from engine.model.server import TargetServer
from engine.pgwire.connection import RESET, RESET_TIMEOUT, WireConnection
from engine.pgwire.results import ResultReader
from engine.pool.server_pool import Key, ServerPool
from muster.core import connect
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.errors import Unavailable

CANCEL_TIMEOUT = 3.0  # seconds to deliver a cancel request
T = TypeVar("T")
Open = Callable[[], Awaitable[Connection]]


class Spawn(Protocol):
    """Starts a background task; the pool waits for it before it closes."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]": ...


def version_of(connection: Connection) -> int:
    """As server_version_num; asyncpg's `minor` is always 0 since version 10."""
    version = connection.get_server_version()
    return min(version.major * 10_000 + version.micro, 2**31 - 1)


class PooledConnection(WireConnection):
    def __init__(
        self,
        server_pool: "ServerPool[PooledConnection]",
        key: Key,
        connection: Connection,
        reader: ResultReader,
        *,
        pooled: bool = False,
    ) -> None:
        super().__init__(connection, reader)
        self.server_pool = server_pool
        self.key = key
        self.pooled = pooled  # by a pooler in transaction mode: no session state survives
        self.preset = True  # the startup packet set the fixed settings; else each attempt does
        self.unusable = False  # never lent again
        self.waited = self.connecting = 0.0  # seconds, for the present borrower
        self.types: dict[int, str] = {}
        self.parameters: dict[str, bool] = {}  # by name: whether the server knows it
        self.idle_since = 0.0  # of the loop's time
        self.open_another: Open
        self.spawn: Spawn
        self.version = version_of(connection)
        self.backend_pid: int = connection.get_server_pid()
        self.copy_server_facts()

    def copy_server_facts(self) -> None:
        """The facts that the server pool has now are true for this session."""
        self.watches_client = self.server_pool.watches_client
        self.timeline = self.server_pool.timeline
        self.crash_epoch = self.server_pool.crash_epoch

    @property
    def server(self) -> TargetServer:
        return self.server_pool.server

    async def execute_and_reset(self, text: str) -> str:
        """Behind a pooler no reset is needed: its session is not ours."""
        if self.pooled:
            return await self.execute(text)
        return await super().execute_and_reset(text)

    async def reset(self) -> None:
        """Rolls back and discards the session's state; a session that can't be reset becomes unusable."""
        clean = False
        try:
            if self.in_transaction:
                await self.execute("rollback", limit=RESET_TIMEOUT)
            if not self.pooled:
                await self.execute(RESET, limit=RESET_TIMEOUT)
            clean = True
        except (*CONNECTION_LOST, asyncpg.PostgresError, TimeoutError):
            pass
        finally:
            self.unusable = self.unusable or not clean

    @contextlib.asynccontextmanager
    async def second_connection(self) -> AsyncIterator[Connection]:
        """A second connection with the same login; it uses the admin slot unless this session is lost."""
        async with contextlib.AsyncExitStack() as stack:
            if not self.lost:
                await stack.enter_async_context(self.server_pool.admin_slot)
            connection = await self.open_another()
            stack.push_async_callback(connect.close, connection)
            try:
                yield connection
            except (*CONNECTION_LOST, *CONFUSED) as error:
                message = "The second connection was lost."
                raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None

    def cancel_statement(self) -> None:
        """After the connection was lost: a server that does not notice it would finish the statement."""
        if not self.watches_client:
            self.spawn(self._cancel())

    def abandon(self) -> None:
        """Closes the connection at once and cancels the statement that may run."""
        if not self.unusable and not self.lost:
            self.spawn(self._cancel())
        self.unusable = True
        self.terminate()

    async def _cancel(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self.result_reader.cancel()


TargetPool: TypeAlias = ServerPool[PooledConnection]
