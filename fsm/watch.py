"""Looks after accounts that rest: an engine that ended, a control database that is gone or went back."""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from fsm import account_steps, control, signals
from fsm.context import Context, Services
from fsm.launch.protocol import Kind
from fsm.launch.queue import OnEnd, Queue
from fsm.launch.workload import Workload
from fsm.machine import Lifecycle
from fsm.store import Machine, Q, machine_of, resource_of
from muster.core import telemetry
from muster.core.db import Connection
from muster.core.errors import Conflict, Fault, Internal, NotFound, Unavailable
from muster.core.settings import Settings
from nodeagent.protocol import ReadEpoch

log = telemetry.get(__name__)

Lifecycles = Mapping[str, Lifecycle]

TOGETHER = 8  # accounts looked at side by side


@dataclass
class Watch:
    services: Services
    _away: dict[UUID, float] = field(default_factory=dict)  # since when, by our monotonic clock

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.once()
            except Fault as error:
                log.warning("accounts can't be looked at", why=error.context or error.message)
            await self.services.clock.sleep_or(stop, self.services.settings.account_check)

    async def once(self) -> None:
        room = asyncio.Semaphore(TOGETHER)

        async def one(work: Awaitable[None]) -> None:
            async with room:
                await work

        rows = await self.services.db.fetch(Q.resting_accounts)
        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(one(self._look(row["uid"])))

    async def _look(self, uid: UUID) -> None:
        db = self.services.db
        machine_row, row = (
            await db.fetchrow(Q.get_machine, uid),
            await db.fetchrow(Q.get_by_uid, uid),
        )
        if machine_row is None or row is None:
            return
        machine = machine_of(machine_row)
        context = Context(services=self.services, machine=machine, resource=resource_of(row))
        try:
            where = await control.of(context)
            read = await where.operate(ReadEpoch())
            account_steps.same_database(context, read)
        except Conflict as wrong:
            await self._tell(machine, "restored", wrong)
        except NotFound as gone:
            await self._tell(machine, "database_gone", gone)
        except Unavailable as away:
            since = self._away.setdefault(uid, self.services.clock.monotonic())
            patience = self.services.settings.workload_silent.total_seconds()
            if self.services.clock.monotonic() - since > patience:
                await self._tell(machine, "database_gone", away)
        else:
            self._away.pop(uid, None)

    async def _tell(self, machine: Machine, signal: str, fault: Fault) -> None:
        self._away.pop(machine.uid, None)
        observed = {"conditions": [condition(fault, self.services.clock.now().isoformat())]}
        async with self.services.db.transaction() as tx:
            await send(tx, self.services.lifecycles, machine.uid, signal, {"observed": observed})


def condition(fault: Fault, since: str) -> dict[str, str]:
    return {
        "type": fault.code,
        "status": "True",
        "message": fault.message,
        "since": since.replace("+00:00", "Z"),
    }


async def send(
    tx: Connection, lifecycles: Lifecycles, uid: UUID, name: str, payload: dict[str, Any]
) -> None:
    """Once: a machine that has the same signal waiting needs no second one."""
    if not await tx.fetchval(Q.signal_waits, uid, name):
        await signals.send(tx, lifecycles, uid=uid, name=name, operation_id=None, payload=payload)


def missing_engines(settings: Settings, lifecycles: Lifecycles) -> OnEnd:
    """The hook of the workload queue: an engine that nobody ended on purpose is missed."""
    queue = Queue(settings)

    async def ended(tx: Connection, workload: Workload) -> None:
        if workload.kind is not Kind.ENGINE or workload.account_uid is None:
            return
        if workload.reason is not None and workload.reason.wanted:
            return
        if workload.mutex_key and await queue.active(tx, workload.mutex_key):
            return
        with contextlib.suppress(Internal):  # the account is gone
            await send(tx, lifecycles, workload.account_uid, "unhealthy", {})

    return ended
