"""One turn of one machine: answer a signal, give up at the deadline, or do a piece of work.

Transaction 1 takes the lease and records the intent; the effect runs outside any transaction,
shorter than the lease; transaction 2 records what came of it, if the lease is still ours.
"""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from fsm import faults, retry, signals, store
from fsm.context import Context, Services
from fsm.lifecycle_table import (
    AGAIN,
    DONE,
    GIVE_UP,
    Done,
    Lifecycle,
    Outcome,
    Rest,
    Row,
    Step,
    Wait,
)
from fsm.store import Machine, Q, Resource
from fsm.transitions import Move, Mover
from muster.core import telemetry
from muster.core.db import Connection
from muster.core.errors import Fault, Unavailable
from muster.core.failpoints import reach

log = telemetry.get(__name__)


class Turn(StrEnum):
    NOTHING = "nothing"  # not due, or another runner has it
    MOVED = "moved"  # due again at once
    RESTS = "rests"  # until a signal or a later time
    LOST = "lost"  # another runner took over; what was done is theirs to repeat


@dataclass(frozen=True)
class Runner:
    services: Services
    name: str

    async def turn(self, uid: UUID) -> Turn:
        settings = self.services.settings
        began = self.services.clock.monotonic()
        async with self.services.db.transaction() as tx:
            claimed = await store.claim(tx, uid, self.name, settings.lease)
            if claimed is None:
                return Turn.NOTHING
            machine, resource = claimed
            mover = Mover(self.services.lifecycles[machine.lifecycle], settings, self.name)
            row = mover.lifecycle.row(machine.state)
            where = f"{machine.lifecycle}.{machine.state}"
            machine, move = await self._without_effect(tx, machine, mover.lifecycle)
            if move:
                turn = _after(await mover.make(tx, machine, resource, move))
            elif isinstance(row, Step):
                await tx.execute(Q.record_intent, uid, machine.command, self._within(row))
            else:
                await tx.execute(Q.stay, uid, None, 0, None, None, None)
                turn = Turn.RESTS
            await reach("fsm.before_commit_1", where)
        await reach("fsm.after_commit_1", where)
        if move or not isinstance(row, Step):
            return turn
        try:
            result = await self._effect(row, machine, resource, began)
            await reach("fsm.after_effect", where)
        except asyncio.CancelledError:
            await asyncio.shield(self._release(machine))
            raise
        async with self.services.db.transaction() as tx:
            turn = await self._record(tx, machine, mover, row, result)
            await reach("fsm.before_commit_2", where)
        await reach("fsm.after_commit_2", where)
        return turn

    async def _without_effect(
        self, tx: Connection, machine: Machine, lifecycle: Lifecycle
    ) -> tuple[Machine, Move | None]:
        """What needs no work: a signal to answer, a deadline that has passed, a rest that has ended."""
        machine, move = await signals.settle(tx, machine, lifecycle)
        if move is None:
            match lifecycle.row(machine.state):
                case Step() if machine.overdue:
                    error = faults.overdue(machine.state, machine.waiting_for, machine.last_error)
                    move = Move(event=GIVE_UP, reason="its time was over", error=error)
                case Rest(again=again) if again:
                    move = Move(event=AGAIN, reason="tries again")
        return machine, move

    async def _effect(
        self, row: Step, machine: Machine, resource: Resource, began: float
    ) -> Outcome | Exception:
        """Over before the lease is, counted from before we asked for it: a process that slept
        through its lease does nothing any more. An error is a result like any other.
        """
        context = Context(services=self.services, machine=machine, resource=resource)
        started = self.services.clock.monotonic()
        left = self.services.settings.step_limit.total_seconds() - (started - began)
        try:
            if left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left):
                await reach("fsm.effect", f"{machine.lifecycle}.{machine.state}")
                return await row.work(context)
        except Exception as error:  # noqa: BLE001 - the one place where any failure of a step ends
            return error

    async def _record(
        self,
        tx: Connection,
        machine: Machine,
        mover: Mover,
        row: Step,
        result: Outcome | Exception,
    ) -> Turn:
        resource = await store.hold(tx, machine)
        if resource is None:
            _note(machine, "lost")
            return Turn.LOST
        machine, move = await signals.settle(tx, machine, mover.lifecycle)
        match result:
            case Done(observed=observed, scratch=scratch):
                _note(machine, "done")
                move = move or Move(event=DONE, reason="done")
                move = replace(move, observed=observed, scratch=scratch)
            case Wait(delay=delay, why=why, scratch=scratch):
                _note(machine, "wait")
                deadline = self._within(row) if result.restarts_deadline else None
                if move is None and scratch:
                    await tx.execute(Q.remember, machine.uid, dict(scratch))
                if move is None:
                    await tx.execute(Q.stay, machine.uid, delay, 0, why, None, deadline)
            case Exception():
                error = faults.to_error(result)
                pause = retry.after(result, machine.attempt, mover.settings)
                _note(machine, "failed" if pause is None else "retry", result)
                if move is None and pause is not None:
                    await tx.execute(Q.stay, machine.uid, pause, machine.attempt, None, error, None)
                elif move is None:
                    move = Move(event=GIVE_UP, reason=error["code"], error=error)
        return _after(await mover.make(tx, machine, resource, move)) if move else Turn.RESTS

    def _within(self, row: Step) -> timedelta:
        return row.within * self.services.settings.deadline_scale

    async def _release(self, machine: Machine) -> None:
        """A stopping process gives the machine back at once; if it can't, the lease runs out."""
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(2), self.services.db.transaction() as tx:
                if await store.hold(tx, machine):
                    zero = self.services.settings.retry_base * 0
                    await tx.execute(Q.stay, machine.uid, zero, machine.attempt, None, None, None)


def _after(row: Row) -> Turn:
    return Turn.MOVED if isinstance(row, Step) else Turn.RESTS


def _note(machine: Machine, outcome: str, error: Exception | None = None) -> None:
    fields = {"machine": machine.uid, "lifecycle": machine.lifecycle, "state": machine.state}
    if error is None:
        log.debug("step ended", outcome=outcome, **fields)
        return
    ours = error.context if isinstance(error, Fault) else ""
    log.warning("step failed", outcome=outcome, why=ours, exc_info=error, **fields)
