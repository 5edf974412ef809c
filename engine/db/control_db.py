"""The control database of the account: few sessions, guarded transactions, and one way to write.

    async with store.writing() as tx:   # the epoch is held: no newer one can take charge meanwhile
        await tx.execute(…)

A stale epoch is Fenced, an outage Unavailable. What an outage cut off at the commit may have happened.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import asyncpg

from engine.process.bootstrap import Bootstrap
from engine.process.exit_codes import Fenced, HostEnded, Incompatible
from muster.core.connect import close
from muster.core.db import AWAY, Connection
from muster.core.errors import Fault, NotFound, Unavailable
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "instance.sql")

SESSIONS = 4  # at once
LONG = 2  # of those, for what has a limit of its own: the heartbeat waits for short work only
KEPT = 2  # of those, while nobody needs them: a server has many accounts
LIMIT = 15.0  # seconds for a whole transaction, with connecting; a server that hangs is hung up on

OURS: dict[str, type[Fault]] = {
    "MU001": Fenced,
    "MU003": Incompatible,
    "MU004": HostEnded,
    "MU010": NotFound,
}
MISSING = frozenset({"3F000", "42501", "42883", "42P01"})  # schema, right, function, table
PASSING = frozenset({"08", "25", "40", "53", "57", "58"})  # classes of what goes by
LOCKED = "55P03"  # by one that was stopped in the middle: the server ends its session soon


class ControlDatabase:
    def __init__(self, bootstrap: Bootstrap) -> None:
        self.epoch = bootstrap.epoch  # the one that we write with
        self.slots = bootstrap.slots  # of a host, as our epoch has it
        self._bootstrap = bootstrap
        self._connector = bootstrap.connector()
        self._slots = asyncio.Semaphore(SESSIONS)
        self._long = asyncio.Semaphore(LONG)
        self._idle: list[Connection] = []

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction that commits only if our epoch is in charge to its very end."""
        async with self.calling() as tx:
            await tx.execute(Q.fence, self.epoch)
            yield tx

    @contextlib.asynccontextmanager
    async def calling(self, limit: float | None = None) -> AsyncIterator[Connection]:
        """One transaction, for functions that look at the epoch themselves; with a limit, once it is its turn.

        A session is used again unless anything went wrong in it.
        """
        turn = contextlib.nullcontext() if limit is None else self._long
        with as_faults():
            async with turn, asyncio.timeout(limit or LIMIT), self._slots:
                connection = self._take() or await self.open_session()
                try:
                    transaction = connection.transaction(isolation="read_committed")
                    await transaction.start()
                    await connection.execute(Q.transaction_settings)
                    yield connection
                    await transaction.commit()
                except BaseException:
                    connection.terminate()  # a rollback that is waited for could hang as well
                    raise
                if len(self._idle) < KEPT:
                    self._idle.append(connection)
                else:
                    await close(connection)

    async def listen(
        self, channels: Iterable[str], heard: Callable[[Any, int, str, Any], None]
    ) -> Connection:
        """A session of its own for wake-ups; the caller terminates it."""
        with as_faults():
            async with asyncio.timeout(LIMIT):
                connection = await self.open_session()
                try:
                    for channel in channels:
                        await connection.add_listener(channel, heard)
                except BaseException:
                    connection.terminate()
                    raise
                return connection

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(close(connection) for connection in idle))

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def open_session(self) -> Connection:
        """The caller closes it."""
        start, given = self._bootstrap.start, self._bootstrap.given
        try:
            return await self._connector.open(
                given.endpoint.direct(),
                user=given.user,
                password=self._bootstrap.password,
                application_name=f"muster-{start.kind} {start.id}",
                database=given.database,
            )
        except Unavailable as fault:  # a connector knows targets only
            raise _away(fault) from fault


@contextlib.contextmanager
def as_faults() -> Iterator[None]:
    try:
        yield
    except (asyncpg.PostgresError, *AWAY) as error:
        fault = as_fault(error)
        if fault is error:
            raise
        raise fault from error


def as_fault(error: BaseException) -> BaseException:
    """The only place of the engine that reads SQLSTATE; what it does not know is our mistake."""
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, asyncpg.PostgresError):
        if state in OURS:
            return OURS[state](str(error.args[0]))
        if state in MISSING:
            message = f"The schema of the control database is not what it must be ({state})."
            return NotFound(message, code="ControlSchemaMissing")
        if state[:2] in PASSING or state == LOCKED:
            return _away(error)
    return _away(error) if isinstance(error, AWAY) else error


def _away(error: BaseException) -> Unavailable:
    name = f"{type(error).__name__} {getattr(error, 'sqlstate', '')}".rstrip()
    return Unavailable(
        "The control database can't be reached.",
        code="ControlDatabaseUnavailable",
        context=error.message if isinstance(error, Fault) else name,
    )
