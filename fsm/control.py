"""The control database of an account, as its machine sees it: through the node agent only."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import msgspec

from fsm.administrator import CLIENT_KEY, PASSWORD, endpoint_of, is_embedded, login_of, secret_of
from fsm.context import Context
from fsm.database_steps import EXISTED
from fsm.store import Q, Resource, resource_by_key, resource_of
from muster.core import sealing
from muster.core.db import Row
from muster.core.endpoint import Endpoint
from muster.core.errors import NotFound, PreconditionFailed, Unavailable
from muster.core.secrets import fingerprint
from muster.core.settings import Secret
from nodeagent.client import AgentClient, login
from nodeagent.protocol import DirectoryPool, DirectoryServer, Login, Roles, SyncDirectory

SERVER = "Microsoft.Sql/servers"
POOL = "Microsoft.Sql/servers/elasticPools"
NO_ADMINISTRATOR = "ServerHasNoAdministrator"


@dataclass(frozen=True)
class Control:
    """Where it is, and who asks: the server's administrator, or the account's own agent role."""

    ctx: Context
    agent: AgentClient
    server: Resource
    database: Resource
    endpoint: Endpoint

    async def is_ours(self) -> bool:
        """Muster made the database: its machine looked, and it was not on the server before."""
        machine = await self.ctx.services.db.fetchrow(Q.get_machine, self.database.uid)
        return machine is not None and machine["scratch"].get(EXISTED) is False

    async def administer(self, command: msgspec.Struct) -> Any:
        user = login_of(self.server)
        password = secret_of(self.ctx.services, self.server, PASSWORD)
        if user is None or password is None:
            raise PreconditionFailed(
                f"Server '{self.server.name}' has no administratorLogin: the account can't be set up.",
                code=NO_ADMINISTRATOR,
            )
        return await self._run(command, user, password)

    async def operate(self, command: msgspec.Struct) -> Any:
        password = secret_of(self.ctx.services, self.ctx.resource, "agent_password")
        assert password is not None
        return await self._run(command, Roles.of(self.ctx.resource.uid).agent, password)

    async def _run(self, command: msgspec.Struct, user: str, password: Any) -> Any:
        uid = self.ctx.resource.uid
        asked: Login = login(
            self.ctx.services.keyring,
            uid,
            server=self.server.key,
            endpoint=self.endpoint,
            database=self.database.name,
            user=user,
            password=password,
        )
        content = msgspec.json.encode(command).decode()
        id = uuid5(self.ctx.command_id, f"{type(command).__name__}/{content}")
        return await self.agent.run(uid, id, command, asked)


async def of(ctx: Context) -> Control:
    """NotFound when the database or its server is gone, so that whoever asks can decide."""
    services = ctx.services
    if services.agent is None or services.queue is None:
        raise Unavailable("This runner serves no job accounts.", code="NodeAgentUnavailable")
    database = await resource_by_key(services.db, ctx.resource.properties["databaseId"].lower())
    server = await resource_by_key(services.db, ctx.resource.parent_key or "")
    if database is None or server is None:
        raise NotFound("The control database is gone.", code="ControlDatabaseNotFound")
    endpoint = endpoint_of(services, server).direct()
    return Control(ctx, services.agent, server, database, endpoint)


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
        """Another one where the key was set again, or would be sealed for somebody else."""
        stored = fingerprint(server.sealed[CLIENT_KEY])
        return sha256(f"{self.public_key}/{self.identity}/{stored}".encode()).hexdigest()


async def sync_directory(where: Control, identity: UUID, *, known: str | None = None) -> str:
    """What the account may reach: every server of its subscription, with its pools and budgets.

    A change of a server is sent after its operation has succeeded, never settings that may be undone.
    The digest of what was sent; nothing is sent when it is the `known` one. `identity` is that of the
    control database as it was found: there alone can keys be opened.
    """
    services, account = where.ctx.services, where.ctx.resource
    recipient = Recipient(account.uid, identity, where.ctx.scratch["publicKey"])
    rows = await services.db.fetch(Q.servers_of_subscription, where.server.key)
    servers = [_settled(row) for row in rows if row["type"] == SERVER]
    pools = [_settled(row) for row in rows if row["type"] == POOL]
    otherwise = account.properties.get("defaultCredential")
    reached = [
        (server, endpoint_of(services, server))
        for server in servers
        if server.properties.get("endpoint") or server.observed.get("endpoint")
    ]
    listed = tuple(
        _certified(_entry(server, endpoint, pools, otherwise), server, endpoint, recipient)
        for server, endpoint in reached
    )
    revision = await services.db.fetchval(Q.directory_revision)
    command = SyncDirectory(revision=revision, servers=listed)
    if command.digest != known:
        keys = {
            server.id: recipient.sealed(server.id, endpoint.client_key)
            for server, endpoint in reached
            if endpoint.client_certificate and endpoint.client_key
        }
        await where.operate(msgspec.structs.replace(command, client_keys=keys))
    return command.digest


def _settled(row: Row) -> Resource:
    """As the server was before an update whose operation has not ended."""
    server = resource_of(row)
    previous = row["previous"]
    if not previous:
        return server
    return replace(server, properties=previous["properties"], sealed=previous["sealed"])


def _certified(
    entry: DirectoryServer, server: Resource, endpoint: Endpoint, recipient: Recipient
) -> DirectoryServer:
    """With the certificate that we show; its key is sealed only when the directory is sent."""
    if not (endpoint.client_certificate and endpoint.client_key):
        return entry
    return msgspec.structs.replace(
        entry,
        client_certificate=endpoint.client_certificate,
        client_key_fingerprint=recipient.fingerprint(server),
    )


def _entry(
    server: Resource, endpoint: Endpoint, pools: list[Resource], otherwise: str | None
) -> DirectoryServer:
    said = server.properties
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
        max_connections=said.get("maxConnections"),
        connections_per_second=said.get("connectionsPerSecond"),
        slots_per_database=said.get("slotsPerDatabase"),
        pools=tuple(_pool(pool) for pool in pools if pool.parent_key == server.key),
        labels=said.get("labels") or {},
        job_credential=said.get("jobCredential") or otherwise,
        disabled=bool(said.get("disabled")),
        embedded=is_embedded(server),
    )


def _pool(pool: Resource) -> DirectoryPool:
    said = pool.properties
    return DirectoryPool(
        name=pool.name,
        databases=tuple(said.get("databases") or ()),
        pattern=said.get("databasePattern"),
        max_connections=said.get("maxConnections"),
        slots_per_database=said.get("slotsPerDatabase"),
        labels=said.get("labels") or {},
    )
