"""The workload queue: one transaction per change, each a conditional update, the first end wins.

The state machine: pending → claimed → launched → running → success | failure | cancelled; an end is
possible from every state before it. What is refused raises Over: the process that asked must stop.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from fsm.launch.protocol import Kind, Reason, State
from fsm.launch.workload import BY_LAUNCHER, NewWorkload, Over, Workload, workload_of
from muster.core import telemetry, wake
from muster.core.db import Connection, Database
from muster.core.errors import Fault, InvalidRequest, NotFound
from muster.core.settings import Settings
from muster.core.sql import Queries

Q = Queries("fsm.launch.sql", "workload.sql")
log = telemetry.get(__name__)

CHANNEL = "workload"
MACHINES = "machine"  # the dispatcher of the lifecycles listens here

OnEnd = Callable[[Connection, Workload], Awaitable[None]]


@dataclass(frozen=True)
class Queue:
    """`on_end` runs in the transaction that ends a workload, once for each."""

    settings: Settings
    on_end: OnEnd | None = None

    async def enqueue(self, tx: Connection, new: NewWorkload) -> Workload:
        """The same id again gives the first row, unchanged; the same mutex key ends the older one."""
        if not new.launch_group:
            raise InvalidRequest("A workload needs a launcher group.")
        if new.mutex_key is not None:
            await tx.execute(Q.lock_mutex, new.mutex_key)
        existing = await tx.fetchrow(Q.get_workload, new.id)
        if existing is not None:
            return workload_of(existing)
        if new.mutex_key is not None:
            await self._supersede(tx, new.mutex_key, new.id)
        row = await tx.fetchrow(
            Q.insert_workload,
            new.id,
            new.kind,
            new.account_uid,
            new.mutex_key,
            new.priority,
            new.launch_group,
            msgspec.to_builtins(new.spec),
            dict(new.sealed),
            dict(new.labels),
            new.epoch,
            self.settings.workload_claim_limit,
        )
        if row is None:  # another transaction enqueued the same id a moment ago
            row = await tx.fetchrow(Q.get_workload, new.id)
            assert row is not None
        await wake.notify_in(tx, CHANNEL)
        return workload_of(row)

    async def get(self, db: Connection | Database, id: UUID) -> Workload:
        row = await db.fetchrow(Q.get_workload, id)
        if row is None:
            raise NotFound(f"Workload {id} is not known.", code="WorkloadNotFound")
        return workload_of(row)

    async def active(self, db: Connection | Database, mutex_key: str) -> Workload | None:
        row = await db.fetchrow(Q.active_of_mutex, mutex_key)
        return workload_of(row) if row else None

    async def of_account(self, db: Connection | Database, account_uid: UUID) -> list[Workload]:
        """Newest first; where `gone_at` is unset, a process may still be there."""
        return [workload_of(row) for row in await db.fetch(Q.of_account, account_uid)]

    async def forget(self, tx: Connection, account_uid: UUID) -> None:
        """Rows, and with them the logs, of an account whose processes are gone."""
        await tx.execute(Q.forget_account, account_uid)

    async def listed(
        self,
        db: Connection | Database,
        launch_group: str,
        *,
        states: tuple[State, ...] | None = None,
        claimed_by: str | None = None,
        limit: int = 100,
    ) -> list[Workload]:
        wanted = list(states) if states is not None else None
        rows = await db.fetch(Q.list_workloads, launch_group, wanted, claimed_by, limit)
        return [workload_of(row) for row in rows]

    async def launched(self, tx: Connection, id: UUID) -> Workload:
        row = await tx.fetchrow(Q.launched, id, self.settings.workload_first_beat)
        if row is not None:
            return workload_of(row)
        workload = await self.get(tx, id)
        if workload.state is State.RUNNING:  # it was quicker than its launcher's report
            return workload
        raise _refused(workload, "launched")

    async def running(
        self, tx: Connection, id: UUID, report: Mapping[str, Any] | None = None
    ) -> Workload:
        limits = (self.settings.workload_silent, self.settings.command_limit)
        row = await tx.fetchrow(Q.running, id, *limits, report)
        if row is None:
            raise _refused(await self.get(tx, id), "running")
        workload = workload_of(row)
        await self._tell(tx, workload)
        return workload

    async def heartbeat(
        self, tx: Connection | Database, id: UUID, report: Mapping[str, Any] | None = None
    ) -> Workload:
        row = await tx.fetchrow(Q.heartbeat, id, self.settings.workload_silent, report)
        if row is None:
            raise _refused(await self.get(tx, id), "heard")
        return workload_of(row)

    async def success(
        self, tx: Connection, id: UUID, result: Mapping[str, Any] | None, *, source: str
    ) -> Workload:
        """A command without a result has failed."""
        workload = await self.get(tx, id)
        if workload.kind is Kind.COMMAND and result is None:
            message = "The command ended without a result."
            return await self.failure(
                tx, id, reason=Reason.NO_RESULT, source=source, message=message
            )
        return await self._end(tx, id, State.SUCCESS, source=source, result=result)

    async def failure(
        self, tx: Connection, id: UUID, *, reason: Reason, source: str, message: str = ""
    ) -> Workload:
        return await self._end(tx, id, State.FAILURE, reason=reason, source=source, message=message)

    async def cancelled(
        self, tx: Connection, id: UUID, *, reason: Reason, source: str, message: str = ""
    ) -> Workload:
        return await self._end(
            tx, id, State.CANCELLED, reason=reason, source=source, message=message
        )

    async def cancel(
        self, tx: Connection, what: UUID | str, reason: Reason, *, source: str = "machine"
    ) -> Workload | None:
        """By id or mutex key; None when there is nothing to cancel. Its process ends soon after."""
        id = what if isinstance(what, UUID) else None
        if isinstance(what, str):
            active = await self.active(tx, what)
            id = active.id if active else None
        if id is not None:
            with contextlib.suppress(Over):
                return await self.cancelled(tx, id, reason=reason, source=source)
        return None

    async def exited(
        self, tx: Connection, id: UUID, launcher: str, exit_code: int | None = None
    ) -> None:
        """Its launcher sees no process any more: one that had not ended has failed by that."""
        workload = await self.get(tx, id)
        if workload.claimed_by != launcher:
            raise _refused(workload, "gone")
        if not workload.state.over:
            code = "" if exit_code is None else f" (exit code {exit_code})"
            message = f"The process ended without a result{code}."
            with contextlib.suppress(Over):
                await self.failure(
                    tx, id, reason=Reason.EXITED, source=BY_LAUNCHER, message=message
                )

    async def gone(
        self, tx: Connection, id: UUID, launcher: str, exit_code: int | None = None
    ) -> Workload | None:
        """Nothing of it is left, neither process nor files; None when that was known."""
        await self.exited(tx, id, launcher, exit_code)
        row = await tx.fetchrow(Q.gone, id, launcher, exit_code)
        if row is None:
            return None
        workload = workload_of(row)
        await self._tell(tx, workload)
        return workload

    async def _supersede(self, tx: Connection, mutex_key: str, by: UUID) -> None:
        older = await self.active(tx, mutex_key)
        if older is not None:
            with contextlib.suppress(Over):
                await self.failure(
                    tx,
                    older.id,
                    reason=Reason.SUPERSEDED,
                    source="workload-api",
                    message=f"Superseded by workload {by}.",
                )

    async def _end(
        self,
        tx: Connection,
        id: UUID,
        to: State,
        *,
        source: str,
        reason: Reason | None = None,
        message: str = "",
        result: Mapping[str, Any] | None = None,
    ) -> Workload:
        row = await tx.fetchrow(Q.end_workload, id, to, reason, source, message or None, result)
        if row is None:
            current = await self.get(tx, id)
            if current.state is to:  # said twice; what was said first stays
                return current
            raise _refused(current, to)
        workload = workload_of(row)
        await self._tell(tx, workload)
        await self._hook(tx, workload)
        return workload

    async def _hook(self, tx: Connection, workload: Workload) -> None:
        """A hook that refuses takes nothing back: its owner looks again by itself, only later."""
        if self.on_end is None:
            return
        try:
            async with tx.transaction():
                await self.on_end(tx, workload)
        except Fault as error:
            log.warning(
                "can't report the end of a workload", workload=workload.id, why=error.message
            )

    async def _tell(self, tx: Connection, workload: Workload) -> None:
        await wake.notify_in(tx, CHANNEL)
        if workload.account_uid is not None:
            await tx.execute(Q.nudge_account, workload.account_uid)
            await wake.notify_in(tx, MACHINES)


def _refused(workload: Workload, wanted: str) -> Over:
    return Over(f"Workload {workload.id} is {workload.state} and can't be {wanted}.")
