"""The control database of the account: few sessions, and transactions with timeouts.

    async with store.writing() as tx:   # checks the epoch: no newer one can become current meanwhile
        await tx.execute(…)

A stale epoch raises Fenced, an outage Unavailable. A commit during an outage may have taken effect.
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

MAX_SESSIONS = 4
MAX_LONG_SESSIONS = (
    2  # for transactions with their own timeout: the heartbeat waits for short ones only
)
MAX_IDLE_SESSIONS = 2  # the sessions of many accounts share a server
TRANSACTION_TIMEOUT = 15.0  # seconds, with connecting; afterwards the connection is closed

FAULTS: dict[str, type[Fault]] = {
    "MU001": Fenced,
    "MU003": Incompatible,
    "MU004": HostEnded,
    "MU010": NotFound,
}
MISSING = frozenset({"3F000", "42501", "42883", "42P01"})  # schema, right, function, table
TEMPORARY = frozenset({"08", "25", "40", "53", "57", "58"})  # classes
LOCKED = "55P03"  # by the session of a stopped process, which the server ends soon


class ControlDatabase:
    def __init__(self, bootstrap: Bootstrap) -> None:
        self.epoch = bootstrap.epoch  # with which this process writes
        self.slots = bootstrap.slots  # of each host
        self._bootstrap = bootstrap
        self._connector = bootstrap.connector()
        self._sessions = asyncio.Semaphore(MAX_SESSIONS)
        self._long = asyncio.Semaphore(MAX_LONG_SESSIONS)
        self._idle: list[Connection] = []

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction that commits only if the epoch of this process is current until its end."""
        async with self.calling() as tx:
            await tx.execute(Q.fence, self.epoch)
            yield tx

    @contextlib.asynccontextmanager
    async def calling(self, limit: float | None = None) -> AsyncIterator[Connection]:
        """One transaction, for functions that check the epoch themselves.

        `limit`: its own timeout in seconds, which begins when a session is free. A session is used again unless an
        exception was raised.
        """
        limiter = contextlib.nullcontext() if limit is None else self._long
        with as_faults():
            async with limiter, asyncio.timeout(limit or TRANSACTION_TIMEOUT), self._sessions:
                connection = self._take() or await self.open_session()
                try:
                    transaction = connection.transaction(isolation="read_committed")
                    await transaction.start()
                    await connection.execute(Q.transaction_settings)
                    yield connection
                    await transaction.commit()
                except BaseException:
                    connection.terminate()  # waiting for a rollback could hang as well
                    raise
                if len(self._idle) < MAX_IDLE_SESSIONS:
                    self._idle.append(connection)
                else:
                    await close(connection)

    async def listen(
        self, channels: Iterable[str], on_notify: Callable[[Any, int, str, Any], None]
    ) -> Connection:
        """A dedicated session for wake-ups; the caller terminates it."""
        with as_faults():
            async with asyncio.timeout(TRANSACTION_TIMEOUT):
                connection = await self.open_session()
                try:
                    for channel in channels:
                        await connection.add_listener(channel, on_notify)
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
        start, settings = self._bootstrap.start, self._bootstrap.workload_settings
        try:
            return await self._connector.open(
                settings.endpoint.direct(),
                user=settings.user,
                password=self._bootstrap.password,
                application_name=f"muster-{start.kind} {start.id}",
                database=settings.database,
            )
        except Unavailable as fault:  # a connector's faults are about targets
            raise _unavailable(fault) from fault


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
    """The Fault for an error of the control database; errors with other SQLSTATEs are returned as they are."""
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, asyncpg.PostgresError):
        if state in FAULTS:
            return FAULTS[state](str(error.args[0]))
        if state in MISSING:
            message = f"The schema of the control database is not what it must be ({state})."
            return NotFound(message, code="ControlSchemaMissing")
        if state[:2] in TEMPORARY or state == LOCKED:
            return _unavailable(error)
    return _unavailable(error) if isinstance(error, AWAY) else error


def _unavailable(error: BaseException) -> Unavailable:
    name = f"{type(error).__name__} {getattr(error, 'sqlstate', '')}".rstrip()
    return Unavailable(
        "The control database can't be reached.",
        code="ControlDatabaseUnavailable",
        context=error.message if isinstance(error, Fault) else name,
    )
