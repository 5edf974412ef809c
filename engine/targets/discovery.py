"""Asks servers which databases, schemas and rows they have; every question only reads, and is bounded."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import asyncpg

from engine.access.credentials import Credentials
from engine.access.errors import CONNECTION_LOST
from engine.access.server_connection import ServerConnection
from engine.model.credential import Credential
from engine.model.group_document import Member
from engine.model.server import Server
from engine.targets.resolver import Door, Listed
from muster.core.connect import Connector, close
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.enumeration import left_out
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from muster.core.sql import Queries

Q = Queries("engine.targets", "discovery.sql")

APPLICATION = "muster-listing"
MOST_ROWS = 1_000_000
MOST_LETTERS = 100_000_000  # in all rows together
AT_ONCE = 500  # rows that are fetched together
NEEDED = frozenset({"server_name", "database_name"})
# Seconds. The server has a limit of its own, which is shorter; these are for one that fell silent.
LIMIT = 45.0  # for an answer
SESSION_LIMIT = 300.0  # for all that is asked in a session: others wait at the door meanwhile
PASSING = frozenset({"40", "53", "57", "58"})  # classes of SQLSTATE that go by
LOCKED = "55P03"


class Discovery:
    def __init__(
        self, connector: Connector, credentials: Credentials, identity: UUID, door: Door
    ) -> None:
        self._connector = connector
        self._credentials = credentials
        self._identity = identity  # of the control database
        self.door = door

    async def databases(self, server: Server, who: Credential) -> list[Listed]:
        async with self._session(server, server.maintenance_database, who) as connection:
            async with _in_time(server):
                rows = await connection.fetch(Q.databases)
        return [Listed(row["name"], left_out(dict(row))) for row in rows]

    async def schemas(
        self, server: Server, database: str, pattern: str, who: Credential
    ) -> list[str]:
        async with self._session(server, database, who) as connection:
            async with _in_time(server):
                rows = await connection.fetch(Q.schemas, pattern)
        return [row["name"] for row in rows]

    async def rows(
        self, server: Server, database: str, member: Member, who: Credential
    ) -> list[dict[str, Any]]:
        async with self._session(server, database, who) as connection:
            async with _in_time(server):
                await connection.execute(Q.user_path)
            found: list[dict[str, Any]] = []
            letters = 0
            async for page in _pages(connection, server, member):
                if missing := NEEDED.difference(page[0].keys()):
                    raise InvalidRequest(
                        f"What names the targets returns no column {' and no '.join(sorted(missing))}.",
                        code="InvalidTargetQuery",
                    )
                found += map(dict, page)
                letters += sum(len(str(value)) for row in page for value in row)
                if len(found) > MOST_ROWS or letters > MOST_LETTERS:
                    raise InvalidRequest(
                        f"What names the targets returns more than {MOST_ROWS} rows"
                        f" or {MOST_LETTERS} characters.",
                        code="TooManyTargets",
                    )
            return found

    @contextlib.asynccontextmanager
    async def _session(
        self, server: Server, database: str, who: Credential
    ) -> AsyncIterator[Connection]:
        with _told():
            way = ServerConnection(self._connector, server, who, self._credentials, self._identity)
            connection = await way.open(database, APPLICATION)
            try:
                async with _in_time(server, SESSION_LIMIT):
                    async with _in_time(server):
                        await connection.transaction(readonly=True).start()
                        await connection.execute(Q.guard)
                    yield connection
            except BaseException:
                connection.terminate()  # a good-bye that is waited for could hang as well
                raise
            await close(connection)


async def _pages(
    connection: Connection, server: Server, member: Member
) -> AsyncIterator[list[asyncpg.Record]]:
    async with _in_time(server):
        question = member.query or await _relation(connection, member.shard_map_name or "")
        cursor = await connection.cursor(question)
    while True:
        async with _in_time(server):
            page = await cursor.fetch(AT_ONCE)
        if not page:
            return
        yield page


async def _relation(connection: Connection, name: str) -> str:
    question: str | None = await connection.fetchval(Q.relation, name)
    if question is None:
        raise NotFound(f"There is no relation '{name}'.", code="ShardMapNotFound")
    return question


@contextlib.asynccontextmanager
async def _in_time(server: Server, limit: float | None = None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit or LIMIT):
            yield
    except TimeoutError:
        message = f"The server {server.name} accepted us and then did not answer."
        raise Unavailable(message, code="TargetTimeout") from None


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What a target answers, as a Fault with the server's own words."""
    try:
        yield
    except (*CONNECTION_LOST, *CONFUSED) as error:
        raise Unavailable("The connection was lost.", code="TargetUnreachable") from error
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        kind = Unavailable if state[:2] in PASSING or state == LOCKED else InvalidRequest
        words = error.args[0] if error.args else repr(error)
        raise kind(f"The server answered: {words} ({state}).", code="TargetRefused") from error
