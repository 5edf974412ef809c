"""How the engine reaches servers: by the directory, with credentials opened here and nowhere else."""

import asyncio
from uuid import UUID

import msgspec

from engine.bootstrap import Bootstrap
from engine.credentials import Credentials
from engine.directory import Document
from engine.library import Served
from engine.line import Line
from engine.listing import Listing
from engine.way import Way
from engine.work import Credential
from muster.core.clock import Clock
from muster.core.sql import Queries

Q = Queries("engine", "road.sql")


class Targets:
    def __init__(self, bootstrap: Bootstrap, clock: Clock) -> None:
        self.clock = clock
        self._connector = bootstrap.target_connector()
        self.credentials = Credentials.of(bootstrap, clock)
        self._doors: dict[str, asyncio.Lock] = {}

    def door(self, server_id: str) -> asyncio.Lock:
        """To the one session that each server spares us, for looking and ending."""
        return self._doors.setdefault(server_id.lower(), asyncio.Lock())

    def listing(self, document: Document) -> Listing:
        return Listing(
            self._connector,
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
        server, who = served.servers[0], Credential.of(dict(rows[0]))
        return Way(self._connector, server, who, self.credentials, served.identity)
