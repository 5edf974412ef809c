"""Long-running operations: created with the change that asks for work, ended with its last transition."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from fsm import faults
from muster.core.db import Connection, Database
from muster.core.ids import ResourceId
from muster.core.sql import Queries

Q = Queries("fsm.sql", "operation.sql")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    operation_id: UUID
    tenant_id: str
    subscription_key: str
    location: str
    resource_uid: UUID
    resource_id: str
    verb: str  # put | patch | delete | post
    status: str  # InProgress | Succeeded | Failed | Canceled
    caller: str
    correlation_id: str | None
    created_at: datetime
    ended_at: datetime | None
    error: dict[str, Any] | None

    @property
    def running(self) -> bool:
        return self.ended_at is None


async def begin(
    tx: Connection,
    *,
    resource_id: ResourceId,
    resource_uid: UUID,
    tenant_id: str,
    location: str,
    verb: str,
    caller: str,
    correlation_id: str,
) -> Operation:
    row = await tx.fetchrow(
        Q.begin_operation,
        tenant_id,
        (resource_id.subscription or "").lower(),
        location,
        resource_uid,
        resource_id.text,
        verb,
        caller,
        correlation_id,
    )
    assert row is not None
    return Operation(**dict(row))


async def running(tx: Connection, resource_uid: UUID) -> Operation | None:
    row = await tx.fetchrow(Q.running_operation, resource_uid)
    return Operation(**dict(row)) if row else None


async def get(db: Database | Connection, operation_id: UUID) -> Operation | None:
    row = await db.fetchrow(Q.get_operation, operation_id)
    return Operation(**dict(row)) if row else None


async def end(
    tx: Connection, operation_id: UUID, status: str, error: dict[str, Any] | None = None
) -> None:
    """Ends it unless it has ended; the first end counts."""
    await tx.execute(Q.end_operation, operation_id, status, error)


async def cancel_running(tx: Connection, resource_uid: UUID) -> None:
    """Makes room for a delete, which interrupts a running operation."""
    operation = await running(tx, resource_uid)
    if operation:
        await end(tx, operation.operation_id, "Canceled", faults.INTERRUPTED)
