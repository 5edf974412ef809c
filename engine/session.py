"""A session at a target, lent to one attempt at a time, with a second one beside it when it must be.

asyncpg logs in; from then on we speak ourselves, since only the simple protocol is spoken here and asyncpg
waits for each answer before it says anything more.
"""

import asyncio
import contextlib
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

import asyncpg

from engine.desk import Desk, Key
from engine.results import IDLE, Ear, Set
from engine.work import Server
from muster.core import connect
from muster.core.db import Connection
from muster.core.errors import Unavailable

CANCEL_LIMIT = 3.0  # seconds to hand in a cancel request
HEADER = struct.Struct("!cI").pack
CLEAN = "discard all"
LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

T = TypeVar("T")
Open = Callable[[], Awaitable[Connection]]


class Spawn(Protocol):
    """Does something behind; whoever lends the sessions waits for its end before it closes."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]": ...


def version_of(connection: Connection) -> int:
    """As server_version_num tells it; asyncpg's minor is always 0 since version 10."""
    version = connection.get_server_version()
    return version.major * 10_000 + version.micro


class Session:
    """A message, then its answer, which `ear` has; nothing is prepared."""

    def __init__(
        self, desk: Desk, key: Key, connection: Connection, ear: Ear, *, pooled: bool = False
    ) -> None:
        self.desk = desk
        self.key = key
        self.connection = connection
        self.ear = ear
        # Behind a pooler that lends the server by transactions: nothing of ours stays there.
        self.pooled = pooled
        self.lost = connection.is_closed()
        self.spoiled = False  # never lent again
        self.waited = self.connecting = 0.0  # seconds, of this loan
        self.types: dict[int, str] = {}
        self.parameters: dict[str, bool] = {}  # by name: whether the server knows it
        self.idle_since = 0.0  # of the loop's time
        self.cleaned: asyncio.Future[bool] | None = None  # whether, once it is known
        self.open_another: Open
        self.spawn: Spawn
        self.version = version_of(connection)
        self.loop = asyncio.get_running_loop()
        self.backend_pid: int = connection.get_server_pid()
        self._asked: deque[asyncio.Future[str]] = deque()
        self._unsent = b""
        ear.answered, ear.hung_up = self._answered, self._hung_up
        settings = connection.get_settings()
        ear.standard_strings = getattr(settings, "standard_conforming_strings", "on") == "on"
        assert ear.dialer
        self._transport = ear.dialer.hand_over()
        self.know()

    def know(self) -> None:
        """What is known of the server now is true of this session."""
        self.watches_client = self.desk.watches_client
        self.timeline = self.desk.timeline
        self.era = self.desk.era

    @property
    def server(self) -> Server:
        return self.desk.server

    @property
    def in_transaction(self) -> bool:
        return self.ear.status != IDLE

    async def say(self, text: str, *, limit: float | None = None) -> str:
        """The last tag of the answer."""
        await self._until_cleaned()
        self.ear.listening = False
        answer = self._answer(self._ask(text))
        return await (answer if limit is None else asyncio.wait_for(answer, limit))

    async def ask(self, text: str, *, skip: int = 0) -> list[Set]:
        """All that is answered, within the ear's bounds; not to the first statements."""
        await self._until_cleaned()
        self.ear.turn(listening=True, skip=skip)
        await self._answer(self._ask(text))
        return self.ear.sets

    async def say_last(self, text: str) -> str:
        """As `say`; in the same breath the session is cleaned for whoever comes next."""
        if self.pooled:
            return await self.say(text)
        await self._until_cleaned()
        self.ear.listening = False
        answered = self._ask(text)
        self.write(CLEAN)
        self.cleaned = self.loop.create_future()
        return await self._answer(answered)

    def write(self, text: str) -> None:
        said = text.encode(self.ear.encoding)
        if b"\0" in said:
            raise ValueError("a message can't hold a NUL")
        if not self._unsent:
            self.loop.call_soon(self._send)
        self._unsent += b"%b%b\0" % (HEADER(b"Q", len(said) + 5), said)

    def _send(self) -> None:
        """At the end of a turn of the loop: whoever is woken at the other end would take our place here."""
        unsent, self._unsent = self._unsent, b""
        if not self.lost:
            self._transport.write(unsent)

    def _ask(self, text: str) -> "asyncio.Future[str]":
        if self.lost:
            raise asyncpg.InterfaceError("The connection is closed.")
        self.write(text)
        asked: asyncio.Future[str] = self.loop.create_future()
        self._asked.append(asked)
        return asked

    async def _answer(self, asked: "asyncio.Future[str]") -> str:
        try:
            return await asked
        except asyncio.CancelledError:  # the answer would be taken for the next one's
            self.abandon()
            raise

    async def _until_cleaned(self) -> None:
        if self.cleaned is not None:
            await asyncio.shield(self.cleaned)

    def _answered(self) -> None:
        failure, self.ear.failure = self.ear.failure, None
        if self._asked:
            asked = self._asked.popleft()
            if not asked.done():
                if failure:
                    asked.set_exception(asyncpg.PostgresError.new(failure))
                else:
                    asked.set_result(self.ear.tag.decode("ascii", "replace"))
        elif self.cleaned is not None and not self.cleaned.done():
            self.cleaned.set_result(failure is None)
        else:
            self.ear.break_off("it speaks out of turn")

    def _hung_up(self) -> None:
        self.lost = True
        failure = self.ear.failure
        while self._asked:
            error = asyncpg.ConnectionDoesNotExistError("The connection was closed.")
            error.__cause__ = asyncpg.PostgresError.new(failure) if failure else None
            asked = self._asked.popleft()
            if not asked.done():
                asked.set_exception(error)
        if self.cleaned is not None and not self.cleaned.done():
            self.cleaned.set_result(False)

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
            except LOST as error:
                message = "The second connection was lost."
                raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None

    def abandon(self) -> None:
        """Hangs up at once; where the server would not notice, it is told to give up."""
        if not self.spoiled and not self.lost:
            self.spawn(self._cancel())
        self.spoiled = True
        self.hang_up()

    def hang_up(self) -> None:
        self.lost = True
        self.connection.terminate()

    async def _cancel(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CANCEL_LIMIT):
                await self.ear.cancel()
