"""What the core says to the control database about executions; every word under its epoch."""

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

TICK = 2.0  # seconds between two signs of life


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
        """The invocation id of the task."""
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
        """As every reserve function takes them."""
        placed = (self.days, self.runs, self.steps, self.ordinals)
        return (self.hosts, *placed, self.attempts, self.invocations)


class ExecutionStore:
    def __init__(self, store: ControlDatabase, heartbeat: Callable[[], None]) -> None:
        self._store = store
        self._connection = ControlConnection(store)
        self._heartbeat = heartbeat  # said while something takes long

    async def rows(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        asked = self._asked(query, *args, limit=limit)
        if limit is None:
            return await asked
        asking = asyncio.ensure_future(asked)
        try:
            while not asking.done():
                self._heartbeat()
                await asyncio.wait({asking}, timeout=TICK)
        finally:
            asking.cancel()
        return asking.result()

    async def value(self, query: str, *args: Any) -> Any:
        ((said,),) = await self._asked(query, *args)
        return said

    async def _asked(self, query: str, *args: Any, limit: float | None = None) -> list[Row]:
        return await self._connection.fetch(query, self._store.epoch, *args, limit=limit)

    async def reserve(self, batch: ReservationBatch, known: Mapping[UUID, int]) -> list[Row]:
        """Completions behind the known numbers of each host."""
        return await self.rows(Q.reserve_and_read, *batch.columns, batch.slots, *_numbers(known))

    async def completions(self, known: Mapping[UUID, int]) -> list[Row]:
        """The same, when nothing is to be reserved."""
        return await self.rows(Q.read_completions, *_numbers(known))

    async def cancel(self, running: list[tuple[UUID, UUID]]) -> None:
        """Hosts and invocations."""
        hosts, invocations = [host for host, _ in running], [each for _, each in running]
        await self.rows(Q.reserve, [], [], [], [], [], [], [], hosts, invocations)

    def hang_up(self) -> None:
        self._connection.hang_up()


def _numbers(known: Mapping[UUID, int]) -> tuple[list[UUID], list[int]]:
    return list(known), list(known.values())
