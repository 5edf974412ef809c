"""How the engine reaches servers: by the directory, with credentials opened here and nowhere else."""

import asyncio
from uuid import UUID

import msgspec

from engine.access.credentials import Credentials
from engine.access.server_connection import ServerConnection
from engine.db.control_connection import ControlConnection
from engine.model.credential import VersionedCredential
from engine.model.group_document import Document
from engine.model.server import ServerLookup
from engine.process.bootstrap import Bootstrap
from engine.targets.discovery import Discovery
from muster.core.clock import Clock
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "executions.sql")


class TargetAccess:
    def __init__(self, bootstrap: Bootstrap, clock: Clock) -> None:
        self.clock = clock
        self._connector = bootstrap.target_connector()
        self.credentials = Credentials.of(bootstrap, clock)
        self._doors: dict[str, asyncio.Lock] = {}

    def door(self, server_id: str) -> asyncio.Lock:
        """To the one session that each server spares us, for looking and ending."""
        return self._doors.setdefault(server_id.lower(), asyncio.Lock())

    def listing(self, document: Document) -> Discovery:
        return Discovery(
            self._connector,
            self.credentials,
            document.identity,
            self.door,
        )

    async def way(
        self, line: ControlConnection, server_id: str, credential_id: UUID | None
    ) -> ServerConnection | None:
        """None: the server or the credential is gone."""
        text = await line.value(Q.servers, [server_id])
        served = msgspec.json.decode(text, type=ServerLookup)
        rows = await line.fetch(Q.secrets, [credential_id])
        if not served.servers or not rows:
            return None
        server, who = served.servers[0], VersionedCredential.of(dict(rows[0]))
        return ServerConnection(self._connector, server, who, self.credentials, served.identity)
