"""A session at a target, lent to one attempt at a time, with a second one beside it when it must be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from engine.access.errors import CONNECTION_LOST
from engine.model.task import TargetServer
from engine.pgwire.connection import WireConnection
from engine.pgwire.results import ResultReader
from engine.pool.server_pool import Key, ServerPool
from muster.core import connect
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.errors import Unavailable

CANCEL_LIMIT = 3.0  # seconds to hand in a cancel request
T = TypeVar("T")
Open = Callable[[], Awaitable[Connection]]


class Spawn(Protocol):
    """Does something behind; whoever lends the sessions waits for its end before it closes."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]": ...


def version_of(connection: Connection) -> int:
    """As server_version_num tells it; asyncpg's minor is always 0 since version 10."""
    version = connection.get_server_version()
    return min(version.major * 10_000 + version.micro, 2**31 - 1)


class PooledConnection(WireConnection):
    def __init__(
        self,
        desk: ServerPool,
        key: Key,
        connection: Connection,
        ear: ResultReader,
        *,
        pooled: bool = False,
    ) -> None:
        super().__init__(connection, ear)
        self.desk = desk
        self.key = key
        # Behind a pooler that lends the server by transactions: nothing of ours stays there.
        self.pooled = pooled
        self.preset = True  # by the startup packet; else each attempt has to
        self.spoiled = False  # never lent again
        self.waited = self.connecting = 0.0  # seconds, of this loan
        self.types: dict[int, str] = {}
        self.parameters: dict[str, bool] = {}  # by name: whether the server knows it
        self.idle_since = 0.0  # of the loop's time
        self.open_another: Open
        self.spawn: Spawn
        self.version = version_of(connection)
        self.backend_pid: int = connection.get_server_pid()
        self.know()

    def know(self) -> None:
        """What is known of the server now is true of this session."""
        self.watches_client = self.desk.watches_client
        self.timeline = self.desk.timeline
        self.era = self.desk.era

    @property
    def server(self) -> TargetServer:
        return self.desk.server

    async def say_last(self, text: str) -> str:
        """The last tag; in the same breath the session is cleaned for whoever comes next, where it is ours."""
        return await self.say_and_clean(text) if not self.pooled else await self.say(text)

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator[Connection]:
        """Another session with the same login, in the place of this one or in the server's spare one."""
        async with contextlib.AsyncExitStack() as stack:
            if not self.lost:
                await stack.enter_async_context(self.desk.spare)
            connection = await self.open_another()
            stack.push_async_callback(connect.close, connection)
            try:
                yield connection
            except (*CONNECTION_LOST, *CONFUSED) as error:
                message = "The second connection was lost."
                raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None

    def call_off(self) -> None:
        """After the line broke: a server that does not watch its client would go on for nobody."""
        if not self.watches_client:
            self.spawn(self._cancel())

    def abandon(self) -> None:
        """Hangs up at once; where the server would not notice, it is told to give up."""
        if not self.spoiled and not self.lost:
            self.spawn(self._cancel())
        self.spoiled = True
        self.hang_up()

    async def _cancel(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CANCEL_LIMIT):
                await self.ear.cancel()
