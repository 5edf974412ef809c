"""How the engine reaches servers: by the directory, with credentials opened here and nowhere else."""

import asyncio
from collections.abc import Iterable
from uuid import UUID

import msgspec

from engine.access.credentials import Credentials
from engine.access.server_connection import Way
from engine.db.control_connection import Line
from engine.model.group_document import Document, Server
from engine.model.task import Credential, Served
from engine.process.bootstrap import Bootstrap
from engine.targets.discovery import Listing
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "executions.sql")


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
