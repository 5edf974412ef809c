"""The audit trail as it is written: every mutation in its own transaction, every denial."""

from collections.abc import Iterable
from uuid import UUID

from muster.core.db import Connection, Database, Row
from muster.core.ids import ResourceId
from workflows.model.resource import Call
from workflows.store.resources import Q

Place = tuple[str | None, str | None, str]  # subscription, resource group, id


async def accepted(
    tx: Connection, call: Call, action: str, id: ResourceId, *, operation_id: UUID | None = None
) -> None:
    """Committed together with the change that it records."""
    status = "Accepted" if operation_id else "Succeeded"
    await _write(tx, call, action, [_place(id)], status, operation_id)


async def accepted_rows(tx: Connection, call: Call, action: str, rows: Iterable[Row]) -> None:
    """The same for each of these rows of `resource`, in one statement."""
    places = [(row["subscription_key"], row["group_key"], row["id"]) for row in rows]
    await _write(tx, call, action, places, "Succeeded", None)


async def started(
    tx: Connection, call: Call, action: str, id: ResourceId, command_id: UUID
) -> None:
    """The outcome follows as an event of its own, once it is known."""
    await _write(tx, call, action, [_place(id)], "Started", command_id)


async def denied(db: Database, call: Call, action: str, id: ResourceId) -> None:
    await _write(db, call, action, [_place(id)], "Denied", None)


def _place(id: ResourceId) -> Place:
    group = id.upto("resourceGroups").key if id.resource_group else None
    return id.subscription and id.subscription.lower(), group, id.text


async def _write(
    db: Connection | Database,
    call: Call,
    action: str,
    places: list[Place],
    status: str,
    operation_id: UUID | None,
) -> None:
    await db.execute(
        Q.write_audit,
        call.principal.tenant_id,
        [subscription for subscription, _, _ in places],
        [group for _, group, _ in places],
        [id for _, _, id in places],
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
