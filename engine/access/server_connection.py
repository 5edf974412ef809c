"""A way to a server, as somebody: past any pooler, with the secret opened here."""

import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from engine.access.credentials import Credentials
from engine.model.group_document import Credential, Server
from engine.model.task import named
from muster.core.connect import Connector, close
from muster.core.db import Connection
from muster.core.settings import Secret


class ServerConnection(NamedTuple):
    connector: Connector
    server: Server
    who: Credential
    credentials: Credentials
    identity: UUID  # of the control database

    async def open(self, database: str | None, application_name: str) -> Connection:
        """Without a database where the server itself is the target; the caller closes it."""
        name = database or self.server.maintenance_database
        there = {"target_server_name": self.server.name, "target_database_name": name}

        async def dial(password: Secret) -> Connection:
            endpoint = self.server.endpoint.direct()
            return await self.connector.open(
                self.credentials.certify(endpoint, self.server, self.identity),
                user=named(self.who.username, there),
                password=password,
                application_name=application_name,
                database=name,
                proven=True,
            )

        return await self.credentials.log_in(self.who, self.server, self.identity, dial)

    @contextlib.asynccontextmanager
    async def session(
        self, database: str | None, application_name: str
    ) -> AsyncIterator[Connection]:
        connection = await self.open(database, application_name)
        try:
            yield connection
        finally:
            await close(connection)

    def pid(self, told: int | None) -> int | None:
        """Of an attempt's backend; what a pooler says its pid is may be anybody's."""
        return None if self.server.pooling == "transaction" else told
