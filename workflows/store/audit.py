"""The audit trail as it is written: every mutation in its own transaction, every denial."""

from uuid import UUID

from muster.core.db import Connection, Database
from muster.core.ids import ResourceId
from workflows.model.resource import Call
from workflows.store.resources import Q


async def accepted(
    tx: Connection, call: Call, action: str, id: ResourceId, *, operation_id: UUID | None = None
) -> None:
    """Committed together with the change that it records."""
    status = "Accepted" if operation_id else "Succeeded"
    await _write(tx, call, action, id, status, operation_id)


async def started(
    tx: Connection, call: Call, action: str, id: ResourceId, command_id: UUID
) -> None:
    """The outcome follows as an event of its own, once it is known."""
    await _write(tx, call, action, id, "Started", command_id)


async def denied(db: Database, call: Call, action: str, id: ResourceId) -> None:
    await _write(db, call, action, id, "Denied", None)


async def _write(
    db: Connection | Database,
    call: Call,
    action: str,
    id: ResourceId,
    status: str,
    operation_id: UUID | None,
) -> None:
    await db.execute(
        Q.write_audit,
        call.principal.tenant_id,
        id.subscription and id.subscription.lower(),
        id.upto("resourceGroups").key if id.resource_group else None,
        id.text,
        action,
        status,
        call.principal.name or call.principal.id,
        call.principal.type.value,
        call.principal.id,
        call.principal.token_id or None,
        call.address,
        call.correlation_id,
        call.request_id,
        operation_id,
        {"method": call.method},
    )
