"""Rows of machines, signals and resources as the runner sees them."""

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from muster.core.db import Connection, Database, Row
from muster.core.sql import Queries

Q = Queries("fsm.sql", "machine.sql", "signal.sql", "resource.sql")


@dataclass(frozen=True, kw_only=True)
class Machine:
    uid: UUID
    lifecycle: str
    resource_id: str
    state: str
    state_entered_at: datetime
    deadline_at: datetime | None
    due_at: datetime | None
    attempt: int
    command_id: UUID | None
    waiting_for: str | None
    last_error: dict[str, Any] | None
    operation_id: UUID | None
    scratch: dict[str, Any]
    version: int
    lease_owner: str | None
    lease_until: datetime | None
    ended_at: datetime | None
    overdue: bool = False  # only a claim asks for it

    @property
    def command(self) -> UUID:
        """Of this visit to this state: a repeat after a crash is the same command."""
        return uuid5(self.uid, f"{self.state}/{self.state_entered_at.isoformat()}")


@dataclass(frozen=True, kw_only=True)
class Signal:
    signal_id: int
    name: str
    operation_id: UUID | None
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resource:
    uid: UUID
    key: str
    id: str
    type: str
    name: str
    parent_key: str | None
    tenant_id: str
    location: str | None
    tags: dict[str, str]
    sku: dict[str, Any] | None
    identity: dict[str, Any] | None
    properties: dict[str, Any]
    observed: dict[str, Any]
    provisioning_state: str
    created_at: datetime
    row_version: int
    sealed: dict[str, Any] = field(repr=False)


def machine_of(row: Row) -> Machine:
    return Machine(**dict(row))


def resource_of(row: Row) -> Resource:
    return Resource(**{f.name: row[f.name] for f in fields(Resource)})


async def due(db: Database, limit: int) -> list[UUID]:
    return [row["uid"] for row in await db.fetch(Q.due_machines, limit)]


async def claim(
    tx: Connection, uid: UUID, runner: str, lease: timedelta
) -> tuple[Machine, Resource] | None:
    """The resource is always locked before the machine: so there is no deadlock."""
    resource = await tx.fetchrow(Q.try_resource, uid)
    machine = await tx.fetchrow(Q.take_lease, uid, runner, lease) if resource else None
    return (machine_of(machine), resource_of(resource)) if machine and resource else None


async def hold(tx: Connection, machine: Machine) -> Resource | None:
    """What the claim gave, if it is still ours; None: stop, the lease was lost."""
    resource = await tx.fetchrow(Q.lock_resource, machine.uid)
    held = await tx.fetchrow(Q.hold, machine.uid, machine.version, machine.lease_owner)
    return resource_of(resource) if resource and held else None


async def waiting_signals(tx: Connection, uid: UUID) -> list[Signal]:
    rows = await tx.fetch(Q.waiting_signals, uid)
    return [Signal(**{f.name: row[f.name] for f in fields(Signal)}) for row in rows]


async def resource_by_key(db: Database, key: str) -> Resource | None:
    row = await db.fetchrow(Q.resource_by_key, key)
    return resource_of(row) if row else None


async def parent_of(db: Database, uid: UUID) -> Resource | None:
    row = await db.fetchrow(Q.parent_of, uid)
    return resource_of(row) if row else None
