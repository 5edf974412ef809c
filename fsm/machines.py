"""Machines as the workflows use them: create one, send a signal, read its state."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from fsm import operations, signals
from fsm.lifecycle_table import Rest
from fsm.lifecycles import LIFECYCLES
from fsm.store import Machine, Q, machine_of, resource_of
from fsm.transitions import show
from muster.core import wake
from muster.core.db import Connection, Database
from muster.core.ids import ResourceId


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One move of a machine."""

    machine_uid: UUID
    seq: int
    from_state: str | None
    to_state: str
    reason: str
    operation_id: UUID | None
    runner: str
    at: datetime


async def create(
    tx: Connection,
    *,
    uid: UUID,
    lifecycle: str,
    resource_id: ResourceId,
    operation_id: UUID,
    scratch: Mapping[str, Any] | None = None,
) -> None:
    """Begins a life in the first state; GET shows that state when the transaction commits.

    `scratch["signal"]`, if given, is what a signal's payload would be.
    """
    table = LIFECYCLES[lifecycle]
    await signals.show_state(tx, uid, table, table.initial)
    await tx.execute(
        Q.create_machine,
        uid,
        lifecycle,
        resource_id.text,
        table.initial,
        operation_id,
        dict(scratch or {}),
    )
    await tx.execute(Q.write_history, uid, None, table.initial, "created", operation_id, "workflow")
    await wake.notify_in(tx, signals.CHANNEL)


async def signal(
    tx: Connection,
    *,
    uid: UUID,
    name: str,
    operation_id: UUID | None = None,
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Waits durably until the machine answers; GET shows at once where it will lead."""
    await signals.send(
        tx, LIFECYCLES, uid=uid, name=name, operation_id=operation_id, payload=payload or {}
    )


async def interrupt(tx: Connection, *, uid: UUID) -> None:
    """Ends the resource's running operation as Canceled, so that a delete can begin its own."""
    await operations.cancel_running(tx, uid)


async def observe(
    tx: Connection, *, uid: UUID, row_version: int, observed: Mapping[str, Any]
) -> None:
    """GET shows this of a machine that rests; one that works, or was written since, shows its own."""
    resource = await tx.fetchrow(Q.lock_resource, uid)
    machine_row = await tx.fetchrow(Q.get_machine, uid)
    if resource is None or machine_row is None or resource["row_version"] != row_version:
        return
    machine = machine_of(machine_row)
    table = LIFECYCLES[machine.lifecycle]
    row = table.row(machine.state)
    if isinstance(row, Rest) and resource["provisioning_state"] == row.provisioning:
        await show(tx, resource_of(resource), table, row, observed)


async def get(db: Database | Connection, uid: UUID) -> Machine | None:
    row = await db.fetchrow(Q.get_machine, uid)
    return machine_of(row) if row else None


async def history(db: Database | Connection, uid: UUID) -> list[Passage]:
    return [Passage(**dict(row)) for row in await db.fetch(Q.history_of, uid)]
