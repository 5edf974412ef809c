"""Lists the databases, schemas and target rows of servers, with read-only queries of bounded time and size."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any
from uuid import UUID

import asyncpg

from engine.access.credentials import Credentials
from engine.access.errors import CONNECTION_LOST
from engine.access.server_connection import ServerConnection
from engine.model.credential import Credential
from engine.model.group_document import Member
from engine.model.server import Server
from engine.targets.member_listing import AdminLock, ListedDatabase
from muster.core.connect import Connector, close
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.enumeration import left_out
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from muster.core.sql import Queries

Q = Queries("engine.targets", "discovery.sql")

APPLICATION = "muster-listing"
MAX_ROWS = 1_000_000
MAX_CHARACTERS = 100_000_000  # in all rows together
FETCH_ROWS = 500  # of one fetch
REQUIRED_COLUMNS = frozenset({"server_name", "database_name"})
# Seconds. The statement timeout of the server is shorter; these are for a server that stops answering.
REPLY_TIMEOUT = 45.0
SESSION_TIMEOUT = 300.0  # for all queries of a session: others wait for the admin lock meanwhile
TRANSIENT_CLASSES = frozenset({"40", "53", "57", "58"})  # of SQLSTATE
LOCK_NOT_AVAILABLE = "55P03"
UNREADABLE = "The server gave an answer that can't be read"


class Discovery:
    def __init__(
        self,
        connector: Connector,
        credentials: Credentials,
        identity: UUID,
        admin_lock: AdminLock,
        provider_databases: Collection[str],
    ) -> None:
        self._connector = connector
        self._credentials = credentials
        self._identity = identity  # of the control database
        self.admin_lock = admin_lock
        self._provider_databases = provider_databases

    async def databases(self, server: Server, credential: Credential) -> list[ListedDatabase]:
        async with self._session(server, server.maintenance_database, credential) as connection:
            async with _timeout(server):
                rows = await connection.fetch(Q.databases)
            return [
                ListedDatabase(name_in(row), left_out(dict(row), self._provider_databases))
                for row in rows
            ]

    async def schemas(
        self, server: Server, database: str, pattern: str, credential: Credential
    ) -> list[str]:
        async with self._session(server, database, credential) as connection:
            async with _timeout(server):
                rows = await connection.fetch(Q.schemas, pattern)
            return [name_in(row) for row in rows]

    async def rows(
        self, server: Server, database: str, member: Member, credential: Credential
    ) -> list[dict[str, Any]]:
        async with self._session(server, database, credential) as connection:
            async with _timeout(server):
                await connection.execute(Q.user_path)
            rows: list[dict[str, Any]] = []
            characters = 0
            async for page in _pages(connection, server, member):
                if missing := REQUIRED_COLUMNS.difference(page[0].keys()):
                    raise InvalidRequest(
                        f"The target query returns no column {' and no '.join(sorted(missing))}.",
                        code="InvalidTargetQuery",
                    )
                rows += map(dict, page)
                characters += sum(len(str(value)) for row in page for value in row)
                if len(rows) > MAX_ROWS or characters > MAX_CHARACTERS:
                    raise InvalidRequest(
                        f"The target query returns more than {MAX_ROWS} rows"
                        f" or {MAX_CHARACTERS} characters.",
                        code="TooManyTargets",
                    )
            return rows

    @contextlib.asynccontextmanager
    async def _session(
        self, server: Server, database: str, credential: Credential
    ) -> AsyncIterator[Connection]:
        with _translate_errors():
            server_connection = ServerConnection(
                self._connector, server, credential, self._credentials, self._identity
            )
            connection = await server_connection.open(database, APPLICATION)
            try:
                async with _timeout(server, SESSION_TIMEOUT):
                    async with _timeout(server):
                        await connection.transaction(readonly=True).start()
                        await connection.execute(Q.guard)
                    yield connection
            except BaseException:
                connection.terminate()  # an orderly close could hang as well
                raise
            await close(connection)


def name_in(row: asyncpg.Record) -> str:
    name = row["name"]
    if not isinstance(name, str):
        raise Unavailable(f"{UNREADABLE}: a name is null.", code="TargetUnreachable")
    return name


async def _pages(
    connection: Connection, server: Server, member: Member
) -> AsyncIterator[list[asyncpg.Record]]:
    async with _timeout(server):
        query = member.query or await _relation(connection, member.shard_map_name or "")
        cursor = await connection.cursor(query)
    while True:
        async with _timeout(server):
            page = await cursor.fetch(FETCH_ROWS)
        if not page:
            return
        yield page


async def _relation(connection: Connection, name: str) -> str:
    query: str | None = await connection.fetchval(Q.relation, name)
    if query is None:
        raise NotFound(f"There is no relation '{name}'.", code="ShardMapNotFound")
    return query


@contextlib.asynccontextmanager
async def _timeout(server: Server, seconds: float | None = None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds or REPLY_TIMEOUT):
            yield
    except TimeoutError:
        message = f"The server {server.name} accepted the connection and then did not answer."
        raise Unavailable(message, code="TargetTimeout") from None


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Turns errors of a server into Faults with its own message."""
    try:
        yield
    except CONNECTION_LOST as error:
        raise Unavailable("The connection was lost.", code="TargetUnreachable") from error
    except CONFUSED as error:
        raise Unavailable(f"{UNREADABLE}.", code="TargetUnreachable") from error
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        kind = (
            Unavailable
            if state[:2] in TRANSIENT_CLASSES or state == LOCK_NOT_AVAILABLE
            else InvalidRequest
        )
        message = error.args[0] if error.args else repr(error)
        raise kind(f"The server answered: {message} ({state}).", code="TargetRefused") from error
