"""Connections of the core to servers, with the addresses and credentials of the directory."""

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
from engine.targets.examination import Examination
from muster.core.clock import Clock
from muster.core.sql import Queries
from muster.core.webhook_client import WebhookClient

Q = Queries("engine.db.queries", "executions.sql")


class TargetAccess:
    def __init__(self, bootstrap: Bootstrap, clock: Clock) -> None:
        self.clock = clock
        self._connector = bootstrap.target_connector()
        self.credentials = Credentials.of(bootstrap, clock)
        self._provider_databases = bootstrap.workload_settings.provider_databases
        self.webhook_client = WebhookClient(bootstrap.webhook_connector())
        self.account_uid = bootstrap.account_uid
        self.private_key = bootstrap.private_key
        self._admin_locks: dict[str, asyncio.Lock] = {}

    def admin_lock(self, server_id: str) -> asyncio.Lock:
        """The core opens one admin session at a time on each server; the session budget reserves it."""
        return self._admin_locks.setdefault(server_id.lower(), asyncio.Lock())

    def discovery(self, document: Document) -> Discovery:
        return Discovery(
            self._connector,
            self.credentials,
            document.identity,
            self.admin_lock,
            self._provider_databases,
        )

    def examination(self, identity: UUID) -> Examination:
        """`identity` is that of the control database."""
        return Examination(
            self._connector,
            self.credentials,
            identity,
            self.admin_lock,
            self._provider_databases,
        )

    async def server_connection(
        self, connection: ControlConnection, server_id: str, credential_id: UUID | None
    ) -> ServerConnection | None:
        """None when the server or the credential does not exist any more."""
        text = await connection.value(Q.servers, [server_id])
        served = msgspec.json.decode(text, type=ServerLookup)
        rows = await connection.fetch(Q.secrets, [credential_id])
        if not served.servers or not rows:
            return None
        server, credential = served.servers[0], VersionedCredential.of(dict(rows[0]))
        return ServerConnection(
            self._connector, server, credential, self.credentials, served.identity
        )
