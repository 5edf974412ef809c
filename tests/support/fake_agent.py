"""A node agent whose control databases are in memory; passes the conformance test of the real one."""

import hashlib
import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from muster.core.clock import Clock
from muster.core.errors import Conflict, InvalidRequest, NotFound, Unavailable
from nodeagent.command_table import SPECS
from nodeagent.protocol import (
    Class,
    DirectoryServer,
    DirectorySynced,
    Drain,
    Draining,
    EpochRead,
    InstallSchema,
    Login,
    ReadEpoch,
    RemoveSchema,
    Roles,
    SchemaInstalled,
    SchemaRemoved,
    SchemaUpgraded,
    SyncDirectory,
    UpgradeSchema,
)
from nodeagent.wire import digest

numbers = itertools.count(16_384)


@dataclass
class Instance:
    """The one row that says who is in charge."""

    account_uid: UUID
    identity: UUID
    epoch: int = 0
    generation: int = 0
    workload_id: UUID | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    draining: bool = False
    released: bool = False
    revision: int = 0
    directory: tuple[DirectoryServer, ...] = ()
    client_keys: dict[str, str] = field(default_factory=dict)
    schema_version: int = 1


@dataclass
class FakeDatabase:
    oid: int = field(default_factory=lambda: next(numbers))
    instance: Instance | None = None
    journal: dict[UUID, tuple[str, Any]] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=list)  # as they were installed

    def install_epoch(self, epoch: int, workload_id: UUID, at: datetime) -> bool:
        """What an engine does first."""
        row = self.instance
        if row is None or row.released or row.epoch >= epoch:
            return False
        row.epoch, row.workload_id, row.started_at = epoch, workload_id, at
        row.generation += 1
        row.heartbeat_at = at
        self.epochs.append(epoch)
        return True


@dataclass
class FakeAgent:
    databases: dict[tuple[str, str], FakeDatabase] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)  # of the one server that all of them are on
    away: bool = False
    read_only: bool = False  # the server is a standby
    schema_version: int = 1  # that it brings
    clock: Clock = field(default_factory=Clock)

    def create(self, server: str, database: str) -> FakeDatabase:
        return self.databases.setdefault((server, database), FakeDatabase())

    def of(self, account_uid: UUID) -> FakeDatabase:
        return next(
            each
            for each in self.databases.values()
            if each.instance and each.instance.account_uid == account_uid
        )

    async def run(
        self, account_uid: UUID, command_id: UUID, command: msgspec.Struct, login: Login, **_: Any
    ) -> Any:
        if self.away:
            raise Unavailable("No node agent can be reached.", code="NodeAgentUnavailable")
        spec = SPECS[type(command)]
        if self.read_only and not spec.repeatable:
            raise Unavailable("It only reads.", code="ControlDatabaseReadOnly")
        if spec.cls is Class.OPERATE and login.user not in self.roles:
            raise InvalidRequest("The login is not accepted.", code="TargetAuthenticationFailed")
        database = self.databases.get((login.server, login.database))
        if database is None and isinstance(command, RemoveSchema):
            self.roles -= set(Roles.of(account_uid).all)
            return SchemaRemoved(schema_kept=False)
        if database is None:
            message = "The database does not exist."
            raise NotFound(message, code="TargetDatabaseNotFound")
        if spec.repeatable:
            return self._do(account_uid, database, command)
        said = hashlib.sha256(f"{spec.name} {digest(spec, command)}".encode()).hexdigest()
        known = database.journal.get(command_id)
        if known is not None and known[0] != said:
            raise Conflict("The id belongs to another command.", code="IdempotencyKeyMismatch")
        if known is not None and not isinstance(command, RemoveSchema):
            return known[1]
        result = self._do(account_uid, database, command)
        database.journal[command_id] = (said, result)
        return result

    def _do(self, uid: UUID, database: FakeDatabase, command: Any) -> Any:
        if isinstance(command, InstallSchema):
            return self._install(uid, database, command)
        if isinstance(command, RemoveSchema):
            return self._remove(uid, database, command)
        row = database.instance
        if row is None:
            raise NotFound("There is no schema.", code="ControlSchemaMissing")
        match command:
            case UpgradeSchema():
                row.schema_version = self.schema_version
                return SchemaUpgraded(schema_version=row.schema_version)
            case SyncDirectory():
                applied = command.revision > row.revision
                if applied:
                    row.revision, row.directory = command.revision, command.servers
                    row.client_keys = command.client_keys
                return DirectorySynced(applied=applied, revision=row.revision)
            case Drain():
                row.draining = True
                return Draining(draining=True, running=0)
            case ReadEpoch():
                return self._read(database, row)
        raise AssertionError(f"the fake does not know {command}")

    def _install(
        self, uid: UUID, database: FakeDatabase, command: InstallSchema
    ) -> SchemaInstalled:
        row = database.instance
        if row and row.account_uid != uid and not row.released:
            raise Conflict("It belongs to another account.", code="ControlDatabaseOccupied")
        self.roles |= set(Roles.of(uid).all)
        if row is None:
            row = database.instance = Instance(uid, command.identity)
        elif row.account_uid != uid:
            row.account_uid, row.identity = uid, command.identity
        row.released = row.draining = False
        return SchemaInstalled(
            schema_version=1, identity=row.identity, epoch=row.epoch, database_oid=database.oid
        )

    def _remove(self, uid: UUID, database: FakeDatabase, command: RemoveSchema) -> SchemaRemoved:
        row = database.instance
        ours = row is not None and row.account_uid == uid
        self.roles -= set(Roles.of(uid).all)
        if ours and command.drop_schema:
            database.instance = None
        elif ours and row is not None:
            row.released = True
        return SchemaRemoved(schema_kept=ours and not command.drop_schema)

    def _read(self, database: FakeDatabase, row: Instance) -> EpochRead:
        return EpochRead(
            account_uid=row.account_uid, identity=row.identity, database_oid=database.oid,
            epoch=row.epoch, generation=row.generation, schema_version=row.schema_version, min_engine_version="0",
            paused=False, draining=row.draining, drained=row.draining,
            directory_revision=row.revision, read_at=self.clock.now() + timedelta(0),
            workload_id=row.workload_id, started_at=row.started_at, heartbeat_at=row.heartbeat_at,
        )  # fmt: skip
