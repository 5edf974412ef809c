"""Asks servers which databases, schemas and rows they have; every question only reads, and is bounded."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import asyncpg

from engine.credentials import Credentials
from engine.directory import Credential, Member, Server
from engine.resolver import Door, Listed
from muster.core.connect import Connector
from muster.core.db import Connection
from muster.core.enumeration import left_out
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from muster.core.sql import Queries

Q = Queries("engine", "listing.sql")

APPLICATION = "muster-listing"
MOST_ROWS = 1_000_000
MOST_LETTERS = 100_000_000  # in all rows together
AT_ONCE = 500  # rows that are fetched together
NEEDED = frozenset({"server_name", "database_name"})


class Listing:
    def __init__(
        self, connector: Connector, credentials: Credentials, identity: UUID, door: Door
    ) -> None:
        self._connector = connector
        self._credentials = credentials
        self._identity = identity  # of the control database
        self.door = door

    async def databases(self, server: Server, who: Credential) -> list[Listed]:
        async with self._session(server, server.maintenance_database, who) as connection:
            rows = await connection.fetch(Q.databases)
        return [Listed(row["name"], left_out(dict(row))) for row in rows]

    async def schemas(
        self, server: Server, database: str, pattern: str, who: Credential
    ) -> list[str]:
        async with self._session(server, database, who) as connection:
            return [row["name"] for row in await connection.fetch(Q.schemas, pattern)]

    async def rows(
        self, server: Server, database: str, member: Member, who: Credential
    ) -> list[dict[str, Any]]:
        async with self._session(server, database, who) as connection:
            question = member.query or await _relation(connection, member.shard_map_name or "")
            found: list[dict[str, Any]] = []
            letters = 0
            cursor = await connection.cursor(question)
            while page := await cursor.fetch(AT_ONCE):
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
        password = await self._credentials.open(who, self._identity)
        with _told():
            async with (
                self._connector.session(
                    server.endpoint.direct(),
                    user=who.username,
                    password=password,
                    application_name=APPLICATION,
                    database=database,
                ) as connection,
                connection.transaction(readonly=True),
            ):
                await connection.execute(Q.guard)
                yield connection


async def _relation(connection: Connection, name: str) -> str:
    question: str | None = await connection.fetchval(Q.relation, name)
    if question is None:
        raise NotFound(f"There is no relation '{name}'.", code="ShardMapNotFound")
    return question


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What a target answers, as a Fault with the server's own words."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise InvalidRequest(
            f"The server answered: {error.args[0] if error.args else error!r} ({error.sqlstate}).",
            code="TargetRefused",
        ) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
        raise Unavailable("The connection was lost.", code="TargetUnreachable") from error
