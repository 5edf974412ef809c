"""Signals: stored durably, answered in order; one that a machine can't answer is ended, never lost."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from fsm import faults, operations
from fsm.lifecycle_table import End, Lifecycle, Rest, Row
from fsm.store import Machine, Q, Signal, machine_of, resource_of, waiting_signals
from fsm.transitions import Move, show
from muster.core import wake
from muster.core.db import Connection
from muster.core.errors import Internal

CHANNEL = "machine"


async def send(
    tx: Connection,
    lifecycles: Mapping[str, Lifecycle],
    *,
    uid: UUID,
    name: str,
    operation_id: UUID | None,
    payload: Mapping[str, Any],
) -> None:
    """Waits until the machine answers; GET shows at once where it will lead."""
    row = await tx.fetchrow(Q.wake_machine, uid)
    if row is None:
        raise Internal(f"machine {uid} does not exist or has ended: '{name}' can't be sent")
    await tx.execute(Q.send_signal, uid, name, operation_id, dict(payload))
    machine = machine_of(row)
    table = lifecycles[machine.lifecycle]
    rest = table.row(machine.state)
    answered = isinstance(rest, Rest) and name in rest.signals
    if answered or name in table.interrupted_by(machine.state):
        await show_state(tx, uid, table, table.move(machine.state, name))
    await wake.notify_in(tx, CHANNEL)


async def show_state(tx: Connection, uid: UUID, lifecycle: Lifecycle, state: str) -> None:
    row = lifecycle.row(state)
    resource = await tx.fetchrow(Q.lock_resource, uid)
    if resource and not isinstance(row, End):
        await show(tx, resource_of(resource), lifecycle, row, {})


async def settle(
    tx: Connection, machine: Machine, lifecycle: Lifecycle
) -> tuple[Machine, Move | None]:
    """Interrupting signals come first, the others in order and only while the machine rests."""
    row = lifecycle.row(machine.state)
    signals = await waiting_signals(tx, machine.uid)
    interrupting = lifecycle.interrupted_by(machine.state)
    interrupt = next((s for s in signals if s.name in interrupting), None)
    if interrupt:
        for older in signals[: signals.index(interrupt)]:
            await _dismiss(tx, older, "Canceled", faults.INTERRUPTED)
        return machine, _move(interrupt)
    if not isinstance(row, Rest):
        return await _join(tx, machine, lifecycle, signals), None
    return machine, await _first_possible(tx, machine, row, signals)


async def _first_possible(
    tx: Connection, machine: Machine, row: Row, signals: list[Signal]
) -> Move | None:
    for signal in signals:
        if isinstance(row, Rest) and signal.name in row.signals:
            return _move(signal)
        await _dismiss(tx, signal, "Failed", faults.refused(signal.name, machine.state))
    return None


async def _join(
    tx: Connection, machine: Machine, lifecycle: Lifecycle, signals: list[Signal]
) -> Machine:
    """A delete while deleting: the work under way answers to the new operation."""
    for signal in signals:
        if signal.name in lifecycle.interrupts:
            await tx.execute(Q.take_signal, signal.signal_id)
            await tx.execute(Q.adopt_operation, machine.uid, signal.operation_id)
            machine = replace(machine, operation_id=signal.operation_id)
    return machine


async def _dismiss(tx: Connection, signal: Signal, status: str, error: faults.Error) -> None:
    await tx.execute(Q.take_signal, signal.signal_id)
    if signal.operation_id:
        await operations.end(tx, signal.operation_id, status, error)


def _move(signal: Signal) -> Move:
    return Move(event=signal.name, reason=f"signal {signal.name}", signal=signal)
