"""A transition, and everything that commits with it: history, operation, resource, machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from fsm import faults, operations, retry
from fsm.conditions import condition, renewed
from fsm.faults import Error
from fsm.lifecycle_table import BACK, DONE, GIVE_UP, End, Lifecycle, Rest, Row, Step
from fsm.store import Machine, Q, Resource, Signal, waiting_signals
from muster.core import wake
from muster.core.db import Connection
from muster.core.settings import Settings

SIGNAL = "signal"  # what the scratch keeps of the signal that is being answered
CAME = "cameFrom"  # the state in which that signal came, where it matters
ROUNDS = "rounds"  # how often a resting state has tried again by itself


@dataclass(frozen=True, kw_only=True)
class Move:
    event: str
    reason: str
    observed: Mapping[str, Any] = field(default_factory=dict)
    scratch: Mapping[str, Any] = field(default_factory=dict)
    error: Error | None = None
    signal: Signal | None = None  # the one that the move answers


@dataclass(frozen=True)
class Mover:
    """Makes moves of one lifecycle inside the caller's transaction, which holds both rows."""

    lifecycle: Lifecycle
    settings: Settings
    runner: str

    async def make(self, tx: Connection, machine: Machine, resource: Resource, move: Move) -> Row:
        left = self.lifecycle.row(machine.state)
        if isinstance(left, Step) and left.back and move.event == GIVE_UP:
            here = machine.scratch.get(CAME) == left.back
            move = replace(move, event=BACK) if here else move
        to = self.lifecycle.row(self.lifecycle.move(machine.state, move.event))
        operation_id = await self._operations(tx, machine, to, move)
        if isinstance(left, Step) and left.restores and move.event != DONE:
            await _restore(tx, machine)
        await tx.execute(
            Q.write_history,
            machine.uid,
            machine.state,
            to.state,
            move.reason,
            operation_id or machine.operation_id,
            self.runner,
        )
        await self._show(tx, resource, to, move)
        scratch = self._scratch(machine, to, move)
        await tx.execute(
            Q.move_machine,
            machine.uid,
            to.state,
            to.within * self.settings.deadline_scale if isinstance(to, Step) else None,
            operation_id,
            scratch,
            await self._due(tx, machine, to, scratch),
            move.error,
            isinstance(to, End),
        )
        return to

    async def _operations(
        self, tx: Connection, machine: Machine, to: Row, move: Move
    ) -> UUID | None:
        """Ends what the move ends; gives the operation that the new state answers to."""
        if move.signal:
            if machine.operation_id and machine.operation_id != move.signal.operation_id:
                await operations.end(tx, machine.operation_id, "Canceled", faults.INTERRUPTED)
            await tx.execute(Q.take_signal, move.signal.signal_id)
            return move.signal.operation_id
        if isinstance(to, Step):
            return machine.operation_id
        if machine.operation_id:
            failed = move.event in {GIVE_UP, BACK}
            await operations.end(
                tx, machine.operation_id, "Failed" if failed else "Succeeded", move.error
            )
        if isinstance(to, End):
            await self._leftovers(tx, machine)
        return None

    async def _leftovers(self, tx: Connection, machine: Machine) -> None:
        """Pending delete signals succeed; all other pending signals are cancelled."""
        for signal in await waiting_signals(tx, machine.uid):
            await tx.execute(Q.take_signal, signal.signal_id)
            if signal.operation_id and signal.name in self.lifecycle.interrupts:
                await operations.end(tx, signal.operation_id, "Succeeded", None)
            elif signal.operation_id:
                await operations.end(tx, signal.operation_id, "Canceled", faults.INTERRUPTED)

    async def _show(self, tx: Connection, resource: Resource, to: Row, move: Move) -> None:
        if isinstance(to, End):
            await tx.execute(Q.nudge_parent, resource.uid)
            await wake.notify_in(tx, "machine")
            await tx.execute(Q.forget_extensions, resource.uid)
            await tx.execute(Q.forget_resource, resource.uid)
            return
        changes = move.signal.payload.get("observed", {}) if move.signal else {}
        observed = {**move.observed, **changes, "lastError": move.error}
        if isinstance(to, Rest) and to.tells and move.error and move.event != BACK:
            now = await tx.fetchval(Q.now)
            failure = condition(move.error["code"], move.error["message"], now)
            observed["conditions"] = renewed(resource.observed.get("conditions"), failure)
        if isinstance(to, Step) and move.event in {DONE, GIVE_UP}:
            observed.pop("lastError")  # shown again when the outcome is known
        await show(tx, resource, self.lifecycle, to, observed)

    def _scratch(self, machine: Machine, to: Row, move: Move) -> dict[str, Any]:
        scratch = {**machine.scratch, **move.scratch}
        if move.signal:
            scratch[SIGNAL] = move.signal.payload
        if move.signal and isinstance(to, Step) and to.back:
            scratch[CAME] = machine.state
        if isinstance(to, Rest) and to.again:
            scratch[ROUNDS] = scratch.get(ROUNDS, 0) + 1
        elif isinstance(to, Rest):
            scratch.pop(ROUNDS, None)
        tries_again = isinstance(to, Rest) and to.again and move.event != BACK
        if isinstance(to, Rest) and not tries_again:  # else it is still what it was asked for
            scratch.pop(SIGNAL, None)
            scratch.pop(CAME, None)
        return scratch

    async def _due(
        self, tx: Connection, machine: Machine, to: Row, scratch: dict[str, Any]
    ) -> timedelta | None:
        match to:
            case Step():
                return timedelta(0)
            case Rest() if await waiting_signals(tx, machine.uid):
                return timedelta(0)
            case Rest(again=again) if again:
                return retry.pause(scratch[ROUNDS], self.settings, first=10)
            case _:
                return None


async def show(
    tx: Connection,
    resource: Resource,
    lifecycle: Lifecycle,
    row: Step | Rest,
    observed: Mapping[str, Any],
) -> None:
    """GET shows the row of the table from here on; a None removes what had been observed."""
    merged = {**resource.observed, **observed}
    if lifecycle.shown_as:
        conditions = merged.get("conditions") or ()
        merged[lifecycle.shown_as] = row.shown(conditions) if isinstance(row, Rest) else row.shows
    merged = {name: value for name, value in merged.items() if value is not None}
    await tx.execute(Q.show, resource.uid, row.provisioning, merged)


async def _restore(tx: Connection, machine: Machine) -> None:
    previous = machine.scratch.get(SIGNAL, {}).get("previous")
    if previous:
        await tx.execute(Q.restore, machine.uid, previous)
