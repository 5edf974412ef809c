"""How the engine reaches servers: by the directory, with credentials opened here and nowhere else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple
from uuid import UUID

import msgspec

from engine.bootstrap import Bootstrap
from engine.credentials import Credentials
from engine.directory import Document, Server
from engine.library import Served
from engine.line import Line
from engine.listing import Listing
from engine.work import Credential, named
from muster.core.clock import Clock
from muster.core.connect import Connector, close
from muster.core.db import Connection
from muster.core.settings import Secret
from muster.core.sql import Queries

Q = Queries("engine", "road.sql")


class Way(NamedTuple):
    """To a server, as somebody."""

    connector: Connector
    server: Server
    who: Credential
    credentials: Credentials
    identity: UUID  # of the control database

    @contextlib.asynccontextmanager
    async def session(
        self, database: str | None, application_name: str
    ) -> AsyncIterator[Connection]:
        """Past any pooler; without a database where the server itself is the target."""
        name = database or self.server.maintenance_database
        there = {"target_server_name": self.server.name, "target_database_name": name}

        async def dial(password: Secret) -> Connection:
            return await self.connector.open(
                self.server.endpoint.direct(),
                user=named(self.who.username, there),
                password=password,
                application_name=application_name,
                database=name,
            )

        connection = await self.credentials.log_in(self.who, self.identity, dial)
        try:
            yield connection
        finally:
            await close(connection)

    def pid(self, told: int | None) -> int | None:
        """Of an attempt's backend; what a pooler says its pid is may be anybody's."""
        return None if self.server.pooling == "transaction" else told


class Targets:
    def __init__(self, bootstrap: Bootstrap, clock: Clock) -> None:
        self.clock = clock
        self._settings = bootstrap.settings()
        self.credentials = Credentials.of(bootstrap, clock)
        self._doors: dict[str, asyncio.Lock] = {}

    def door(self, server_id: str) -> asyncio.Lock:
        """To the one session that each server spares us, for looking and ending."""
        return self._doors.setdefault(server_id.lower(), asyncio.Lock())

    def listing(self, document: Document) -> Listing:
        return Listing(
            self.connector(document.directory.servers),
            self.credentials,
            document.identity,
            self.door,
        )

    async def way(self, line: Line, server_id: str, credential_id: UUID | None) -> Way | None:
        """None: the server or the credential is gone."""
        text = await line.value(Q.servers, [server_id])
        served = msgspec.json.decode(text, type=Served)
        rows = await line.fetch(Q.secrets, [credential_id])
        if not served.servers or not rows:
            return None
        server, who = served.servers[0], Credential(**dict(rows[0]))
        connector = self.connector(served.servers)
        return Way(connector, server, who, self.credentials, served.identity)

    def connector(self, servers: Iterable[Server]) -> Connector:
        return Connector(self._settings, frozenset().union(*(each.own for each in servers)))
