"""The audit trail as it is written: every mutation in its own transaction, every denial."""

from uuid import UUID

import msgspec

from muster.core.db import Connection, Database
from muster.core.ids import ResourceId
from workflows.model.resource import Call
from workflows.store.resources import Q


async def accepted(
    tx: Connection, call: Call, action: str, id: ResourceId, *, operation_id: UUID | None = None
) -> None:
    """Committed together with the change that it records."""
    status = "Accepted" if operation_id else "Succeeded"
    await _write(tx, call, action, _resources(id), status, operation_id)


async def accepted_all(tx: Connection, call: Call, action: str, resources: str) -> None:
    """The same for each resource of a JSON array, in one statement."""
    await _write(tx, call, action, resources, "Succeeded", None)


async def started(
    tx: Connection, call: Call, action: str, id: ResourceId, command_id: UUID
) -> None:
    """The outcome follows as an event of its own, once it is known."""
    await _write(tx, call, action, _resources(id), "Started", command_id)


async def denied(db: Database, call: Call, action: str, id: ResourceId) -> None:
    await _write(db, call, action, _resources(id), "Denied", None)


def _resources(id: ResourceId) -> str:
    group = id.upto("resourceGroups").key if id.resource_group else None
    subscription = id.subscription and id.subscription.lower()
    resource = {"subscription_key": subscription, "group_key": group, "id": id.text}
    return msgspec.json.encode([resource]).decode()


async def _write(
    db: Connection | Database,
    call: Call,
    action: str,
    resources: str,
    status: str,
    operation_id: UUID | None,
) -> None:
    await db.execute(
        Q.write_audit,
        call.principal.tenant_id,
        resources,
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
