"""What a group is resolved from: its document, read from the control database in one call."""

import fnmatch
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self
from uuid import UUID

import msgspec

from muster.core.endpoint import Endpoint

AZURE = ".database.windows.net"


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """Lenient, so that a newer schema may say more."""


class Pool(_Read, frozen=True):
    name: str
    databases: tuple[str, ...] = ()
    pattern: str | None = None
    labels: dict[str, Any] = {}

    def holds(self, database: str) -> bool:
        return database in self.databases or bool(
            self.pattern and fnmatch.fnmatchcase(database, self.pattern)
        )


class Server(_Read, frozen=True):
    server_id: str
    name: str
    hosts: tuple[str, ...]
    port: int
    ssl_mode: str
    ca_certificate: str | None = None
    pooling: str = "none"
    direct_host: str | None = None
    target_session_attrs: str = "any"
    maintenance_database: str = "postgres"
    pools: tuple[Pool, ...] = ()
    labels: dict[str, Any] = {}
    job_credential: str | None = None
    disabled: bool = False
    client_certificate: str | None = None  # PEM
    client_key: str | None = None  # sealed; opened where the server is dialed
    endpoint_id: str | None = None  # another one with another endpoint

    def pool_of(self, database: str) -> str | None:
        return next((pool.name for pool in self.pools if pool.holds(database)), None)

    def labels_of(self, database: str | None) -> dict[str, str]:
        """Its own, and over them those of the database's pool."""
        pool = next((pool for pool in self.pools if pool.holds(database or "")), None)
        labels = self.labels if pool is None else self.labels | pool.labels
        return {name: str(value) for name, value in labels.items()}

    @property
    def endpoint(self) -> Endpoint:
        """Without the key of its client certificate: this one may be kept."""
        return Endpoint(
            hosts=self.hosts,
            port=self.port,
            ssl_mode=self.ssl_mode,
            ca_certificate=self.ca_certificate,
            client_certificate=self.client_certificate,
            pooling=self.pooling,
            direct_host=self.direct_host,
            target_session_attrs=self.target_session_attrs,
            maintenance_database=self.maintenance_database,
        )


class Listed(_Read, frozen=True, rename="camel"):
    """A server that a credential is for, at the endpoint that it had then."""

    server_id: str
    endpoint: str


class Credential(_Read, frozen=True):
    name: str
    username: str
    secret: str
    servers: tuple[Listed, ...] | None = None  # None: any

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A row of read_credentials."""
        given = dict(row)
        if isinstance(given["servers"], str):
            given["servers"] = msgspec.json.decode(given["servers"])
        return msgspec.convert(given, cls)

    def refusal(self, server: Server) -> str | None:
        """Why it does not log in there; None when it may."""
        if self.servers is None:
            return None
        listed = next((each for each in self.servers if each.server_id == server.server_id), None)
        if listed is None:
            return (
                f"The credential '{self.name}' lists the servers that it is for, and '{server.name}' is not one of "
                f"them. Add it to the credential's servers, or use another credential."
            )
        if listed.endpoint != server.endpoint_id:
            return (
                f"The endpoint of the server '{server.name}' has changed since the credential '{self.name}' listed "
                f"it. If that is right, set the credential's servers again."
            )
        return None


class Member(_Read, frozen=True, rename="camel"):
    target_id: UUID
    membership_type: str
    type: str
    server_name: str | None = None
    database_name: str | None = None
    elastic_pool_name: str | None = None
    shard_map_name: str | None = None
    schema_pattern: str | None = None
    query: str | None = None
    target_group_id: UUID | None = None  # nested
    refresh_credential_id: UUID | None = None
    credential_id: UUID | None = None

    @property
    def includes(self) -> bool:
        return self.membership_type == "Include"

    @property
    def text(self) -> str:
        """For people: its type and what it names."""
        names = (
            self.server_name,
            self.database_name,
            self.elastic_pool_name or self.schema_pattern or self.shard_map_name,
        )
        return " ".join((self.type, "/".join(name for name in names if name))).strip()


class Group(_Read, frozen=True):
    name: str
    members: tuple[Member, ...]


class Directory(_Read, frozen=True):
    revision: int
    servers: tuple[Server, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """The group, every group inside it, and what naming a target may need."""

    target_group_id: UUID
    hash: str
    identity: UUID  # of the control database: sealed secrets are bound to it
    groups: dict[UUID, Group]
    credentials: dict[UUID, Credential]
    directory: Directory

    @cached_property
    def _by_name(self) -> dict[str, Server]:
        """Short names and Azure's come first; a host name counts where it is one server's alone."""
        servers = self.directory.servers
        hosts = Counter(host for server in servers for host in {*map(str.lower, server.hosts)})
        named = {h.lower(): s for s in servers for h in s.hosts if hosts[h.lower()] == 1}
        for server in servers:
            named[server.name.lower() + AZURE] = named[server.name.lower()] = server
        return named

    def server(self, name: str) -> Server | None:
        return self._by_name.get(name.lower())

    def credential(self, *ids: UUID | None, name: str | None = None) -> Credential | None:
        """The first that is given; a name comes last."""
        for id in ids:
            if id is not None and id in self.credentials:
                return self.credentials[id]
        if name is None:
            return None
        found = (each for each in self.credentials.values() if each.name.lower() == name.lower())
        return next(found, None)
