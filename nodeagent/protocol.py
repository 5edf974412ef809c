"""What can be asked of a node agent: every command with its arguments, its result and its rules.

A command has an id, given by the caller and the same at each repeat. Commands that change something
are journalled in the control database in the transaction of their effect, so a repeat gets the first
result and the same id with other arguments is a Conflict. Repeatable ones only look: each run
answers with what is there now.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from muster.core.endpoint import Endpoint


class Class(StrEnum):
    ADMINISTER = "administer"  # logs in as the server's administrator
    OPERATE = "operate"  # logs in as the account's agent role, which may only call functions


class Door(StrEnum):
    REST = "rest"
    FSM = "fsm"


@dataclass(frozen=True)
class Roles:
    """The account's roles; cluster-wide, therefore named after its uid."""

    prefix: str

    @classmethod
    def of(cls, account_uid: UUID) -> "Roles":
        return cls(f"muster_{account_uid.hex}")

    @property
    def owner(self) -> str:
        return f"{self.prefix}_owner"

    @property
    def agent(self) -> str:
        return f"{self.prefix}_agent"

    @property
    def engine(self) -> str:
        return f"{self.prefix}_engine"

    @property
    def groups(self) -> tuple[str, str, str]:
        return f"{self.prefix}_reader", f"{self.prefix}_operator", f"{self.prefix}_admin"

    @property
    def all(self) -> tuple[str, ...]:
        return (self.owner, self.agent, self.engine, *self.groups)


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Login(_Frozen, frozen=True):
    """Where the control database is and who logs in; secrets are sealed (see `client.login`)."""

    server: str  # key of the server resource: what the request is routed by
    endpoint: Endpoint
    database: str
    user: str
    password: str
    client_key: str | None = None


# Arguments


class InstallSchema(_Frozen, frozen=True):
    """Roles, schemas, key and identity; a schema that an account left behind is taken over."""

    identity: UUID  # random, made by the caller before the first try
    public_key: str  # base64 of the account's X25519 public key
    agent_password: str  # sealed
    engine_password: str  # sealed
    revoke_public: bool = False  # Muster made the database: only the account's roles may connect


class UpgradeSchema(_Frozen, frozen=True):
    revoke_public: bool = False


class VerifySchema(_Frozen, frozen=True):
    pass


class RemoveSchema(_Frozen, frozen=True):
    """Drops the roles that we made and forgets secrets; the schemas go only when asked."""

    drop_schema: bool = False


class DirectoryPool(_Frozen, frozen=True, omit_defaults=True):
    """Defaults are not sent: an older agent would not know all of them."""

    name: str
    databases: tuple[str, ...] = ()
    pattern: str | None = None
    max_connections: int | None = None
    slots_per_database: int | None = None  # null = as its server says
    labels: dict[str, str] = {}


class DirectoryServer(_Frozen, frozen=True):
    server_id: str
    name: str
    hosts: tuple[str, ...]
    port: int = 5432
    ssl_mode: str = "verify-full"
    ca_certificate: str | None = None
    pooling: str = "none"
    direct_host: str | None = None
    target_session_attrs: str = "any"
    maintenance_database: str = "postgres"
    max_connections: int | None = None
    connections_per_second: float | None = None
    slots_per_database: int | None = None
    pools: tuple[DirectoryPool, ...] = ()
    labels: dict[str, str] = {}
    worker_pool: str | None = None
    job_credential: str | None = None
    disabled: bool = False
    # Defaults are not sent: an older agent would not know them.
    client_certificate: str | msgspec.UnsetType = msgspec.UNSET
    client_key_fingerprint: str | msgspec.UnsetType = msgspec.UNSET
    database_labels: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET


class SyncDirectory(_Frozen, frozen=True, omit_defaults=True):
    """Replaces the whole directory and the account's settings; a revision that is not newer changes nothing."""

    revision: int
    servers: tuple[DirectoryServer, ...]
    client_keys: dict[str, str] = {}  # by server_id; sealed for the account's own key
    same_error_limit: int = 50  # of the account: haltAfterConsecutiveSameError
    run_attempts: dict[str, Any] | None = None  # of the account: runAttempts

    @property
    def digest(self) -> str:
        """Of all but the keys: by it a change is noticed, and a key never seals alike."""
        content = (self.servers, self.same_error_limit, self.run_attempts)
        return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.servers) * 500


class ReadEpoch(_Frozen, frozen=True):
    pass


class Drain(_Frozen, frozen=True):
    pass


class Pause(_Frozen, frozen=True):
    cancel_running: bool = False


class Resume(_Frozen, frozen=True):
    pass


# Results: lenient, so that a newer schema may say more


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    pass


class SchemaInstalled(_Result, frozen=True):
    """As found afterwards: an identity or epoch that is not the expected one means a restore."""

    schema_version: int
    identity: UUID
    epoch: int
    database_oid: int


class SchemaUpgraded(_Result, frozen=True):
    schema_version: int


class SchemaVerified(_Result, frozen=True):
    """Sound when the three lists are empty; they hold what was changed by hand."""

    account_uid: UUID
    identity: UUID
    schema_version: int
    min_engine_version: str
    public_key: str | None
    missing: tuple[str, ...]
    changed: tuple[str, ...]
    added: tuple[str, ...]


class SchemaRemoved(_Result, frozen=True):
    schema_kept: bool


class DirectorySynced(_Result, frozen=True):
    applied: bool  # false: the control database had this revision or a newer one
    revision: int


class HostRead(_Result, frozen=True):
    host_id: UUID
    adopted_epoch: int
    host_name: str
    slots: int
    running: int
    state: str
    heartbeat_at: datetime


class EpochRead(_Result, frozen=True):
    """All times are of the control database's clock; compare them with `read_at`."""

    account_uid: UUID
    identity: UUID
    database_oid: int
    epoch: int
    generation: int
    schema_version: int
    min_engine_version: str
    paused: bool
    draining: bool
    drained: bool
    directory_revision: int
    read_at: datetime
    workload_id: UUID | None = None
    host_name: str | None = None
    version: str | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    hosts: tuple[HostRead, ...] = ()


class Draining(_Result, frozen=True):
    draining: bool
    running: int


class Paused(_Result, frozen=True):
    paused: bool
    canceled: int | None = None  # runs that were cancelled; None: that was not asked for
