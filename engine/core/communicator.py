"""Stands between the controller and the hosts: knows every host that can be spoken to, and misses the others.

A host that died, or is not heard of for three heartbeats, gets nothing any more, and nothing it says
counts any more: what it had reserved goes back, and what it ran is looked for at the target. Only when
its session there is gone (we end it) is it known what became of it: committed, not committed, or
unknown. A target that can't be asked is asked again until the host, wherever it is, must have stopped
by itself.
"""

import asyncio
import contextlib
import os
import socket
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from engine.access.commit_status import AUTOCOMMIT
from engine.context.core_context import CoreContext
from engine.core.orphaned_attempt import OrphanOutcome, resolve_orphan
from engine.core.runs.execution_store import Q
from engine.core.service import Service
from engine.db import membership
from engine.db.control_connection import ControlConnection
from engine.db.membership import HostRow
from engine.db.wakeups import RESULTS
from engine.scheduling.runs import read_completion
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)

LOOK = timedelta(seconds=1)
BEATS = 3  # that a host may miss
AGAIN = timedelta(seconds=2)  # before a target that can't be asked is asked again
TOGETHER = 8  # targets that are asked side by side
MESSAGES = {
    OrphanOutcome.COMMITTED: "It committed; its host was lost before it could say so.",
    OrphanOutcome.ABORTED: "Its host was lost; nothing was committed.",
    OrphanOutcome.UNKNOWN: "Its host was lost, and whether it committed can't be told.",
}


class Communicator(Service):
    name = "communicator"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._connection = ControlConnection(context.store)
        self._heard: dict[UUID, tuple[Any, float]] = {}  # last beat, and seconds without another
        self._looked = context.clock.monotonic()
        self._settling: dict[UUID, asyncio.Task[None]] = {}  # by invocation
        self._room = asyncio.Semaphore(TOGETHER)

    @property
    def pause(self) -> timedelta:
        return min(LOOK, self.context.heartbeat)

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            for task in self._settling.values():
                task.cancel()
            self._connection.hang_up()

    async def run_once(self) -> None:
        cluster_state = self.context.cluster_state
        before, now = cluster_state.hosts, await membership.hosts(self.context.store)
        for host in now.keys() - before.keys():
            log.info("a host came", host=host, pid=now[host].pid, slots=now[host].slots)
        for host in before.keys() - now.keys():
            log.info("a host went", host=host, pid=before[host].pid)
        cluster_state.see(now)
        dead = {id for id, host in now.items() if _died(host)}
        passed = self._passed()
        silent = {id for id, host in now.items() if self._misses(host, passed)}
        for host in (dead | silent) - cluster_state.silent:
            log.warning("a host is missed", host=host, died=host in dead)
        if before.keys() != now.keys() or cluster_state.silent != dead | silent:
            self.context.wakeups.ring(RESULTS)  # tasks may go to others now
        cluster_state.silent = dead | silent
        run_state = cluster_state.run_state
        busy = {running.host for running in run_state.running.values()} if run_state else set()
        for host in busy & (cluster_state.silent | (busy - now.keys())):
            await self._disown(host)
        for host in dead - busy:
            await membership.end_lost_host(self.context.store, host)
        self.status = f"knows {len(now)} hosts" + (
            f", misses {len(cluster_state.silent)}" * bool(cluster_state.silent)
        )

    def _passed(self) -> float:
        """Seconds since the last look, as far as we could look: an outage silences everybody."""
        before, self._looked = self._looked, self.context.clock.monotonic()
        return min(self._looked - before, 2 * self.pause.total_seconds())

    def _misses(self, host: HostRow, passed: float) -> bool:
        beat, silent = self._heard.get(host.host_id, (None, 0.0))
        silent = silent + passed if beat == host.heartbeat_at else 0.0
        self._heard[host.host_id] = (host.heartbeat_at, silent)
        return silent > BEATS * self.context.heartbeat.total_seconds()

    async def _disown(self, host: UUID) -> None:
        """Nothing of it counts any more; what it ran is settled one by one."""
        run_state = self.context.cluster_state.run_state
        assert run_state is not None
        if all(id in self._settling for id, each in run_state.running.items() if each.host == host):
            return
        for row in await self._connection.fetch(Q.disown, self.context.store.epoch, host):
            new = row["invocation_id"]
            held = run_state.find(row["job_execution_id"], row["step_id"], row["ordinal"])
            if held is None and row["old_invocation"] in run_state.running:
                held = row["old_invocation"]  # of a run that is just being begun
            if row["task_lifecycle"] == "Created":
                if held is not None:
                    run_state.release(held)
                continue
            if held is not None:
                run_state.rename(held, new)
                if settling := self._settling.pop(held, None):
                    settling.cancel()
            self._settling[new] = asyncio.create_task(self._settle(dict(row)))
        self.context.wakeups.ring(RESULTS)

    async def _settle(self, task: dict[str, Any]) -> None:
        try:
            await self._tell(task, await self._verdict(task))
        finally:
            self._settling.pop(task["invocation_id"], None)

    async def _verdict(self, task: dict[str, Any]) -> OrphanOutcome:
        until = self.context.clock.monotonic() + self.context.host_patience.total_seconds()
        while self.context.clock.monotonic() < until:
            try:
                return await self._ask(task)
            except Fault as fault:
                log.info("a target can't be asked", server=task["server_id"], why=fault.message)
            await self.context.clock.sleep(AGAIN)
        return OrphanOutcome.ABORTED if task["xact_id"] is None else OrphanOutcome.UNKNOWN

    async def _ask(self, task: dict[str, Any]) -> OrphanOutcome:
        """Ends what is left of it at its target first."""
        targets = self.context.targets
        server_connection = await targets.server_connection(
            self._connection, task["server_id"], task["credential_id"]
        )
        if server_connection is None:
            return OrphanOutcome.UNKNOWN
        async with targets.admin_lock(server_connection.server.server_id), self._room:
            return await resolve_orphan(
                server_connection,
                task["database_name"],
                backend_pid=task["backend_pid"],
                old_invocation=task["old_invocation"],
                xact_id=task["xact_id"],
                started=task["start_time"],
            )

    async def _tell(self, task: dict[str, Any], verdict: OrphanOutcome) -> None:
        guarded = task["guard"] and task["xact_id"] != AUTOCOMMIT
        repeatable = task["idempotent"] or guarded
        committed, unknown = verdict is OrphanOutcome.COMMITTED, verdict is OrphanOutcome.UNKNOWN
        told = {
            "d": task["run_day"],
            "r": task["job_execution_id"],
            "s": task["step_id"],
            "o": task["ordinal"],
            "a": task["attempt"],
            "i": task["invocation_id"],
            "lifecycle": "Succeeded" if committed else "Failed",
            "retry": not committed and (not unknown or repeatable),
            "reason": None if committed else "OutcomeUnknown" if unknown else "HostLost",
            "message": MESSAGES[verdict],
            "lastMessage": MESSAGES[verdict],
        }
        told["fingerprint"] = told["reason"]
        store, cluster_state = self.context.store, self.context.cluster_state
        while True:
            with contextlib.suppress(Fault):
                text = await self._connection.value(
                    Q.settle, store.epoch, msgspec.json.encode([told]).decode()
                )
                break
            await self.context.clock.sleep(AGAIN)
        log.info("a lost task is settled", verdict=verdict.value, ordinal=task["ordinal"])
        cluster_state.settled += 1
        if cluster_state.run_state is not None:
            cluster_state.run_state.inbox += read_completion(text)
        self.context.wakeups.ring(RESULTS)


def _died(host: HostRow) -> bool:
    """Known for sure, and only of a process on this machine."""
    if host.host_name != socket.gethostname():
        return False
    try:
        os.kill(host.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
