"""Opens connections to a server with one credential, without any pooler; the secret is opened here."""

import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from engine.access.credentials import Credentials
from engine.model.credential import Credential, render_name
from engine.model.server import Server
from muster.core.connect import Connector, close
from muster.core.db import Connection
from muster.core.settings import Secret


class ServerConnection(NamedTuple):
    connector: Connector
    server: Server
    credential: Credential
    credentials: Credentials
    identity: UUID  # of the control database

    async def open(self, database: str | None, application_name: str) -> Connection:
        """`database` is None where the server itself is the target; the caller closes the connection."""
        name = database or self.server.maintenance_database
        values = {"target_server_name": self.server.name, "target_database_name": name}

        async def dial(password: Secret) -> Connection:
            endpoint = self.server.endpoint.direct()
            return await self.connector.open(
                self.credentials.certify(endpoint, self.server, self.identity),
                user=render_name(self.credential.username, values),
                password=password,
                application_name=application_name,
                database=name,
                proven=True,
            )

        return await self.credentials.log_in(self.credential, self.server, self.identity, dial)

    @contextlib.asynccontextmanager
    async def session(
        self, database: str | None, application_name: str
    ) -> AsyncIterator[Connection]:
        connection = await self.open(database, application_name)
        try:
            yield connection
        finally:
            await close(connection)

    def pid(self, reported: int | None) -> int | None:
        """Of an attempt's backend; a pooler in transaction mode reports a pid that is not the backend's."""
        return None if self.server.pooling == "transaction" else reported
