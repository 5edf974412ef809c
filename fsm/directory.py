"""The directory of an account: the servers that it may use as targets, as its control database gets them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol
from uuid import UUID

import msgspec

from fsm.administrator import CLIENT_KEY, Means, endpoint_of
from fsm.store import Q, Resource
from muster.core import sealing
from muster.core.db import Database
from muster.core.endpoint import Endpoint
from muster.core.secrets import fingerprint
from muster.core.settings import Secret
from muster.core.worker_thread import compute
from nodeagent.protocol import DirectoryPool, DirectoryServer, DirectorySynced, SyncDirectory

SERVER = "Microsoft.Sql/servers"
POOL = "Microsoft.Sql/servers/elasticPools"
DATABASE = "Microsoft.Sql/servers/databases"
SAME_ERROR_LIMIT = 50  # of an account that says nothing about it

Send = Callable[[SyncDirectory], Awaitable[DirectorySynced]]


class Source(Means, Protocol):
    """Where servers and their keys are read: the services of the runner, or those of the workflows."""

    @property
    def db(self) -> Database: ...


@dataclass(frozen=True, kw_only=True)
class DirectoryRow(Resource):
    """A server or a pool, with its settings before an update whose operation has not ended."""

    previous: dict[str, Any] | None

    @property
    def settled(self) -> Resource:
        if not self.previous:
            return self
        return replace(self, properties=self.previous["properties"], sealed=self.previous["sealed"])


@dataclass(frozen=True)
class Sent:
    """What a control database holds: a digest of the servers, and the revision under which it has them."""

    digest: str
    revision: int


@dataclass(frozen=True)
class Recipient:
    """Whom the keys of client certificates are sealed for: the account, in this very control database."""

    account: UUID
    identity: UUID
    public_key: str

    def sealed(self, server_id: str, key: str) -> str:
        context = sealing.belongs_to_server(self.account, self.identity, server_id)
        return sealing.seal(self.public_key, Secret(key), context)

    def fingerprint(self, server: Resource) -> str:
        """Changes when the key was set again, or must be sealed for another account."""
        stored = fingerprint(server.sealed[CLIENT_KEY])
        return sha256(f"{self.public_key}/{self.identity}/{stored}".encode()).hexdigest()


async def sync(
    source: Source, account: Resource, recipient: Recipient, send: Send, *, sent: Sent | None = None
) -> Sent | None:
    """Sends the servers that were allowed to the account, with their pools and budgets.

    A change of a server is sent after its operation has succeeded, never settings that may be undone.
    Nothing is sent when it is what was `sent`. None: the control database has a later revision.
    """
    # Before the rows are read: a later revision never has older rows.
    revision = await source.db.fetchval(Q.directory_revision)
    rows: str = await source.db.fetchval(Q.servers_of_account, account.uid)
    command, digest = await compute(
        _command, source, account, recipient, rows, revision, size=len(rows)
    )
    if sent is not None and digest == sent.digest:
        return sent
    answer = await send(command)
    return Sent(digest, revision) if answer.applied else None


def _command(
    source: Source, account: Resource, recipient: Recipient, rows: str, revision: int
) -> tuple[SyncDirectory, str]:
    """With its digest; there may be thousands of rows."""
    resources = [row.settled for row in msgspec.json.decode(rows, type=list[DirectoryRow])]
    servers = [resource for resource in resources if resource.type == SERVER]
    inside: dict[
        str | None, list[Resource]
    ] = {}  # pools and databases with labels, by their server
    for resource in resources:
        if resource.type != SERVER:
            inside.setdefault(resource.parent_key, []).append(resource)
    otherwise = account.properties.get("defaultCredential")
    entries: list[DirectoryServer] = []
    keys: dict[str, str] = {}
    for server in servers:
        if server.properties.get("endpoint") or server.observed.get("endpoint"):
            endpoint = endpoint_of(source, server)
            entry = _entry(server, endpoint, inside.get(server.key, []), otherwise)
            entries.append(_certified(entry, server, endpoint, recipient))
            if endpoint.client_certificate and endpoint.client_key:
                keys[server.id] = recipient.sealed(server.id, endpoint.client_key)
    limit = account.properties.get("haltAfterConsecutiveSameError", SAME_ERROR_LIMIT)
    command = SyncDirectory(
        revision=revision,
        servers=tuple(entries),
        client_keys=keys,
        same_error_limit=limit,
        run_attempts=account.properties.get("runAttempts"),
    )
    return command, command.digest


def _certified(
    entry: DirectoryServer, server: Resource, endpoint: Endpoint, recipient: Recipient
) -> DirectoryServer:
    """With the certificate that we show."""
    if not (endpoint.client_certificate and endpoint.client_key):
        return entry
    return msgspec.structs.replace(
        entry,
        client_certificate=endpoint.client_certificate,
        client_key_fingerprint=recipient.fingerprint(server),
    )


def _entry(
    server: Resource, endpoint: Endpoint, inside: list[Resource], otherwise: str | None
) -> DirectoryServer:
    properties = server.properties
    databases = (each for each in inside if each.type == DATABASE)
    labels = {each.name: own for each in databases if (own := each.properties.get("labels"))}
    return DirectoryServer(
        server_id=server.id,
        name=server.name,
        hosts=endpoint.names,
        port=endpoint.port,
        ssl_mode=endpoint.ssl_mode,
        ca_certificate=endpoint.ca_certificate,
        pooling=endpoint.pooling,
        direct_host=endpoint.direct_host,
        target_session_attrs=endpoint.target_session_attrs,
        maintenance_database=endpoint.maintenance_database,
        max_connections=properties.get("maxConnections"),
        connections_per_second=properties.get("connectionsPerSecond"),
        slots_per_database=properties.get("slotsPerDatabase"),
        pools=tuple(_pool(pool) for pool in inside if pool.type == POOL),
        labels=properties.get("labels") or {},
        job_credential=properties.get("jobCredential") or otherwise,
        disabled=bool(properties.get("disabled")),
        database_labels=labels or msgspec.UNSET,
    )


def _pool(pool: Resource) -> DirectoryPool:
    properties = pool.properties
    return DirectoryPool(
        name=pool.name,
        databases=tuple(properties.get("databases") or ()),
        pattern=properties.get("databasePattern"),
        max_connections=properties.get("maxConnections"),
        slots_per_database=properties.get("slotsPerDatabase"),
        labels=properties.get("labels") or {},
    )
