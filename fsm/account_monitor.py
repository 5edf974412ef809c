"""Checks ready accounts: an engine that ended, a control database that was dropped or restored."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from fsm import account_runtime, account_steps, control_database, signals
from fsm.account import S
from fsm.conditions import condition
from fsm.context import Context, Services
from fsm.control_database import Control
from fsm.directory import Sent
from fsm.launch.protocol import Kind, Reason
from fsm.launch.queue import OnEnd, Queue
from fsm.launch.workload import Workload
from fsm.lifecycle_table import Lifecycle
from fsm.store import Machine, Q, machine_of, resource_of
from muster.core import telemetry
from muster.core.db import Connection
from muster.core.errors import Fault, NotFound
from muster.core.settings import Settings
from nodeagent.protocol import EpochRead, ReadEpoch

log = telemetry.get(__name__)

Lifecycles = Mapping[str, Lifecycle]

MISSED = {Kind.ENGINE: "EngineEnded", Kind.HOST: "HostEnded"}
TOGETHER = 8  # accounts looked at side by side
BLIND = {"NodeAgentUnavailable", "NodeAgentTimeout"}  # then nothing is known of the database


@dataclass
class Watch:
    services: Services
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # a server or pool: look at once
    _away: dict[UUID, float] = field(default_factory=dict)  # since when, by our monotonic clock
    _sent: dict[UUID, Sent] = field(default_factory=dict)  # directories, as they were sent

    async def run(self, stop: asyncio.Event) -> None:
        pause = self.services.settings.account_check
        while not stop.is_set():
            self.changed.clear()
            try:
                await self.once()
            except Fault as error:
                log.warning("can't check accounts", why=error.context or error.message)
            await self.services.clock.sleep_or(stop, pause, self.changed)

    async def once(self) -> None:
        room = asyncio.Semaphore(TOGETHER)

        async def one(uid: UUID, look: Awaitable[None]) -> None:
            async with room:
                try:
                    await look
                except Fault as error:
                    log.warning("can't check account", account=uid, why=error.message)

        db = self.services.db
        ready = [row["uid"] for row in await db.fetch(Q.resting_accounts)]
        failed = [row["uid"] for row in await db.fetch(Q.idle_accounts)]
        self._away = {uid: since for uid, since in self._away.items() if uid in ready}
        self._sent = {uid: sent for uid, sent in self._sent.items() if uid in ready}
        async with asyncio.TaskGroup() as group:
            for uid in ready:
                group.create_task(one(uid, self._look(uid)))
            for uid in failed:
                group.create_task(one(uid, self._clean(uid)))

    async def _clean(self, uid: UUID) -> None:
        """What failed keeps its error, and nothing that runs."""
        if self.services.queue is not None:
            await account_runtime.end_all(
                self.services.queue, self.services.db, uid, Reason.REQUESTED
            )

    async def _look(self, uid: UUID) -> None:
        db = self.services.db
        machine_row = await db.fetchrow(Q.get_machine, uid)
        row = await db.fetchrow(Q.get_by_uid, uid)
        if machine_row is None or row is None:
            return
        machine = machine_of(machine_row)
        context = Context(services=self.services, machine=machine, resource=resource_of(row))
        try:
            where = await control_database.of(context)
            await self._compare(context, where)
        except NotFound as gone:
            await self._tell(machine, "database_gone", gone)
        except Fault as wrong:
            if wrong.code in account_steps.STRANGE:
                await account_runtime.fence(self.services, uid)
                await self._tell(machine, "restored", wrong)
            else:
                await self._wait(machine, wrong)
        else:
            self._away.pop(uid, None)

    async def _compare(self, context: Context, where: Control) -> None:
        read = await where.operate(ReadEpoch())
        account_steps.same_database(context, read)
        await self._show_paused(context, read)
        wrong = await self._missed(context, read)
        if wrong is not None:
            await self._tell(context.machine, "unhealthy", wrong)
        uid = context.resource.uid
        sent = self._sent.pop(uid, None)
        if sent is not None and sent.revision != read.directory_revision:
            sent = None  # another process has sent one since
        sent = await control_database.sync_directory(where, read.identity, sent=sent)
        if sent is not None:
            self._sent[uid] = sent

    async def _show_paused(self, context: Context, read: EpochRead) -> None:
        """Shows `paused` as the control database has it: psql can change it too."""
        shown = context.resource
        if read.paused != bool(shown.observed.get("paused")):
            db = self.services.db
            await db.execute(Q.show_paused, shown.uid, read.paused, shown.row_version)

    async def _missed(self, context: Context, read: EpochRead) -> Fault | None:
        """What no end of a workload has reported."""
        uid, settings = context.resource.uid, self.services.settings
        active = await account_runtime.active(context)
        engine = active.get(account_runtime.engine_key(uid))
        if engine is None:
            return Fault("The account has no engine.", code="EngineEnded")
        if engine.epoch != context.scratch[account_steps.EPOCH]:
            return Fault("The engine has an epoch that was replaced.", code="EngineNotAsRecorded")
        silent = settings.workload_silent
        if read.heartbeat_at is None or read.read_at - read.heartbeat_at > silent:
            message = "The engine does not reach the control database."
            return Fault(message, code="EngineUnhealthy")
        if any(
            account_runtime.host_key(uid, n) not in active for n in range(settings.engine_hosts)
        ):
            return Fault("The account has too few hosts.", code="HostEnded")
        return None

    async def _wait(self, machine: Machine, away: Fault) -> None:
        """An outage of a moment is no matter; without a node agent we can't tell."""
        if away.code in BLIND:
            return
        now = self.services.clock.monotonic()
        since = self._away.setdefault(machine.uid, now)
        if now - since > self.services.settings.workload_silent.total_seconds():
            await self._tell(machine, "database_gone", away)

    async def _tell(self, machine: Machine, signal: str, fault: Fault) -> None:
        """Unless it has moved since we looked: then what we saw is no longer true."""
        self._away.pop(machine.uid, None)
        async with self.services.db.transaction() as tx:
            await tell(
                tx,
                self.services.lifecycles,
                machine.uid,
                signal,
                condition(fault.code, fault.message, await tx.fetchval(Q.now)),
                version=machine.version,
            )


async def tell(
    tx: Connection,
    lifecycles: Lifecycles,
    uid: UUID,
    name: str,
    changes: Mapping[str, Any],
    *,
    version: int | None = None,
) -> None:
    """Only to an account that rests, and once; one that works finds out by itself.

    The resource is locked before the machine, as everywhere.
    """
    if await tx.fetchrow(Q.lock_resource, uid) is None:
        return
    row = await tx.fetchrow(Q.get_machine, uid)
    if row is None or row["state"] != S.READY or version not in {None, row["version"]}:
        return
    if not await tx.fetchval(Q.signal_waits, uid, name):
        payload = {"observed": {"conditions": [dict(changes)]}}
        await signals.send(tx, lifecycles, uid=uid, name=name, operation_id=None, payload=payload)


def missing_engines(settings: Settings, lifecycles: Lifecycles) -> OnEnd:
    """The hook of the workload queue: an engine or host that did not end on purpose is replaced.

    A lost host is brought back with the next engine, which adopts the hosts that are left. An engine
    whose version does not fit is not lost: another one of the same version would not fit either.
    """
    queue = Queue(settings)

    async def ended(tx: Connection, workload: Workload) -> None:
        if workload.kind not in MISSED or workload.account_uid is None:
            return
        if workload.reason is not None and workload.reason.wanted:
            return
        if workload.mutex_key and await queue.active(tx, workload.mutex_key):
            return
        at = workload.ended_at
        assert isinstance(at, datetime)
        if workload.misfit:
            wrong = account_runtime.incompatible(workload.misfit)
            failure = condition(wrong.code, wrong.message, at)
            await tell(tx, lifecycles, workload.account_uid, "incompatible", failure)
            return
        why = f"The {workload.kind} ended ({workload.reason or workload.state}): {workload.message or ''}"
        failure = condition(MISSED[workload.kind], why.rstrip(": "), at)
        await tell(tx, lifecycles, workload.account_uid, "unhealthy", failure)

    return ended
