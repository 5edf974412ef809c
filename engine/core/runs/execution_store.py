"""The core's statements about executions in the control database; each carries the epoch."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.scheduling.runs import RunningTask
from muster.core.db import Row
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "executions.sql", "planning.sql")

HEARTBEAT_INTERVAL = 2.0  # seconds, during a long statement


@dataclass
class ReservationBatch:
    """Columns of one reservation."""

    hosts: list[UUID] = field(default_factory=list)
    days: list[Any] = field(default_factory=list)
    runs: list[UUID] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    invocations: list[UUID] = field(default_factory=list)
    slots: list[UUID | None] = field(default_factory=list)  # of prefetched tasks

    def add(self, task: RunningTask) -> UUID:
        """Returns the new invocation id of the task."""
        step, target = task.step, task.target
        self.hosts.append(task.host)
        self.days.append(step.run.day)
        self.runs.append(step.run.id)
        self.steps.append(step.plan.step_id)
        self.ordinals.append(target.ordinal)
        self.attempts.append(target.attempts + 1)
        self.slots.append(task.slot.id if task.slot.tasks else None)
        self.invocations.append(invocation := uuid4())
        return invocation

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """Arguments of every reserve function."""
        targets = (self.days, self.runs, self.steps, self.ordinals)
        return (self.hosts, *targets, self.attempts, self.invocations)


class ExecutionStore:
    def __init__(self, store: ControlDatabase, heartbeat: Callable[[], None]) -> None:
        self._store = store
        self._connection = ControlConnection(store)
        self._heartbeat = heartbeat  # called during a long statement

    async def rows(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        statement = self._fetch(query, *args, limit=limit)
        if limit is None:
            return await statement
        task = asyncio.ensure_future(statement)
        try:
            while not task.done():
                self._heartbeat()
                await asyncio.wait({task}, timeout=HEARTBEAT_INTERVAL)
        finally:
            task.cancel()
        return task.result()

    async def value(self, query: str, *args: Any) -> Any:
        ((value,),) = await self._fetch(query, *args)
        return value

    async def _fetch(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        return await self._connection.fetch(query, self._store.epoch, *args, limit=limit)

    async def reserve(self, batch: ReservationBatch, marks: Mapping[UUID, int]) -> list[Row]:
        """Reserves the batch; returns the completions after the marks, which are numbers by host."""
        return await self.rows(Q.reserve_and_read, *batch.columns, batch.slots, *_columns(marks))

    async def completions(self, marks: Mapping[UUID, int]) -> list[Row]:
        """The same without a reservation."""
        return await self.rows(Q.read_completions, *_columns(marks))

    async def cancel(self, running: list[tuple[UUID, UUID]]) -> None:
        """Cancels tasks, given by host and invocation."""
        hosts, invocations = (
            [host for host, _ in running],
            [invocation for _, invocation in running],
        )
        await self.rows(Q.reserve, [], [], [], [], [], [], [], hosts, invocations)

    def disconnect(self) -> None:
        self._connection.disconnect()


def _columns(marks: Mapping[UUID, int]) -> tuple[list[UUID], list[int]]:
    return list(marks), list(marks.values())
