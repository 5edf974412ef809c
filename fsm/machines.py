"""Machines as the workflows use them: begin a life, send a signal, look."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from fsm import faults, operations
from fsm.lifecycles import LIFECYCLES
from fsm.machine import End, Lifecycle, Rest
from fsm.moves import show
from fsm.store import Machine, Q, machine_of, resource_of
from muster.core import wake
from muster.core.db import Connection, Database
from muster.core.errors import Internal
from muster.core.ids import ResourceId

CHANNEL = "machine"


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
    await _show(tx, uid, table, table.initial)
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
    await wake.notify_in(tx, CHANNEL)


async def signal(
    tx: Connection,
    *,
    uid: UUID,
    name: str,
    operation_id: UUID | None = None,
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Waits durably until the machine answers; GET shows at once where it will lead."""
    if await tx.fetchval(Q.wake_machine, uid) is None:
        raise Internal(f"machine {uid} does not exist or has ended: '{name}' can't be sent")
    await tx.execute(Q.send_signal, uid, name, operation_id, dict(payload or {}))
    machine = await get(tx, uid)
    assert machine is not None
    table = LIFECYCLES[machine.lifecycle]
    row = table.row(machine.state)
    if name in table.interrupted_by(machine.state) or (isinstance(row, Rest) and name in row.signals):
        await _show(tx, uid, table, table.move(machine.state, name))
    await wake.notify_in(tx, CHANNEL)


async def interrupt(tx: Connection, *, uid: UUID) -> None:
    """Ends the resource's running operation as Canceled, so that a delete can begin its own."""
    running = await operations.running(tx, uid)
    if running:
        await operations.end(tx, running.operation_id, "Canceled", faults.INTERRUPTED)


async def get(db: Database | Connection, uid: UUID) -> Machine | None:
    row = await db.fetchrow(Q.get_machine, uid)
    return machine_of(row) if row else None


async def history(db: Database | Connection, uid: UUID) -> list[Passage]:
    return [Passage(**dict(row)) for row in await db.fetch(Q.history_of, uid)]


async def _show(tx: Connection, uid: UUID, table: Lifecycle, state: str) -> None:
    row = table.row(state)
    resource = await tx.fetchrow(Q.lock_resource, uid)
    if resource and not isinstance(row, End):
        await show(tx, resource_of(resource), table, row, {})
