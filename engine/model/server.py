"""Servers of the directory, as the control database describes them."""

import fnmatch
from typing import Any
from uuid import UUID

import msgspec

from muster.core.endpoint import Endpoint


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    databases: tuple[str, ...] = ()
    pattern: str | None = None
    labels: dict[str, Any] = {}

    def holds(self, database: str) -> bool:
        return database in self.databases or bool(
            self.pattern and fnmatch.fnmatchcase(database, self.pattern)
        )


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Unknown fields are ignored, so that a newer schema may have more."""

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
    database_labels: dict[str, dict[str, Any]] = {}  # of database resources, by their names
    job_credential: str | None = None
    disabled: bool = False
    client_certificate: str | None = None  # PEM
    client_key: str | None = None  # sealed; opened where a connection to the server is opened
    endpoint_id: str | None = None  # changes with the endpoint

    def pool_of(self, database: str) -> str | None:
        return next((pool.name for pool in self.pools if pool.holds(database)), None)

    def labels_of(self, database: str | None) -> dict[str, str]:
        """The server's labels; those of the database's pool and then of its resource take precedence."""
        pool = next((pool for pool in self.pools if pool.holds(database or "")), None)
        labels = self.labels if pool is None else self.labels | pool.labels
        labels = labels | self.database_labels.get(database or "", {})
        return {name: str(value) for name, value in labels.items()}

    @property
    def endpoint(self) -> Endpoint:
        """Without the key of the client certificate, so the endpoint may be cached."""
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


class TargetServer(Server, frozen=True):
    """A server with its connection limits: those that a user set, and the budget of the first contact."""

    max_connections: int | None = None
    connections_per_second: float | None = None
    budget: int | None = None

    def for_access(self, access: str) -> "TargetServer":
        """The server as a step with that `settings.access` connects to it."""
        if access != "preferStandby":
            return self
        return msgspec.structs.replace(self, target_session_attrs="prefer-standby")


class ServerLookup(msgspec.Struct, frozen=True):
    """The reply of the query `servers`."""

    revision: int  # of the directory
    identity: UUID  # of the control database: sealed secrets are bound to it
    servers: tuple[TargetServer, ...]
