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

    def __init__(self, means: CoreContext) -> None:
        super().__init__(means)
        self._line = ControlConnection(means.store)
        self._heard: dict[UUID, tuple[Any, float]] = {}  # last beat, and seconds without another
        self._looked = means.clock.monotonic()
        self._settling: dict[UUID, asyncio.Task[None]] = {}  # by invocation
        self._room = asyncio.Semaphore(TOGETHER)

    @property
    def pause(self) -> timedelta:
        return min(LOOK, self.means.heartbeat)

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            for task in self._settling.values():
                task.cancel()
            self._line.hang_up()

    async def turn(self) -> None:
        view = self.means.view
        before, now = view.hosts, await membership.hosts(self.means.store)
        for host in now.keys() - before.keys():
            log.info("a host came", host=host, pid=now[host].pid, slots=now[host].slots)
        for host in before.keys() - now.keys():
            log.info("a host went", host=host, pid=before[host].pid)
        view.see(now)
        dead = {id for id, host in now.items() if _died(host)}
        passed = self._passed()
        silent = {id for id, host in now.items() if self._misses(host, passed)}
        for host in (dead | silent) - view.silent:
            log.warning("a host is missed", host=host, died=host in dead)
        if before.keys() != now.keys() or view.silent != dead | silent:
            self.means.rings.ring(RESULTS)  # tasks may go to others now
        view.silent = dead | silent
        floor = view.floor
        busy = {running.host for running in floor.running.values()} if floor else set()
        for host in busy & (view.silent | (busy - now.keys())):
            await self._disown(host)
        for host in dead - busy:
            await membership.end_lost_host(self.means.store, host)
        self.doing = f"knows {len(now)} hosts" + (
            f", misses {len(view.silent)}" * bool(view.silent)
        )

    def _passed(self) -> float:
        """Seconds since the last look, as far as we could look: an outage silences everybody."""
        before, self._looked = self._looked, self.means.clock.monotonic()
        return min(self._looked - before, 2 * self.pause.total_seconds())

    def _misses(self, host: HostRow, passed: float) -> bool:
        beat, silent = self._heard.get(host.host_id, (None, 0.0))
        silent = silent + passed if beat == host.heartbeat_at else 0.0
        self._heard[host.host_id] = (host.heartbeat_at, silent)
        return silent > BEATS * self.means.heartbeat.total_seconds()

    async def _disown(self, host: UUID) -> None:
        """Nothing of it counts any more; what it ran is settled one by one."""
        floor = self.means.view.floor
        assert floor is not None
        if all(id in self._settling for id, each in floor.running.items() if each.host == host):
            return
        for row in await self._line.fetch(Q.disown, self.means.store.epoch, host):
            new = row["invocation_id"]
            held = floor.find(row["job_execution_id"], row["step_id"], row["ordinal"])
            if held is None and row["old_invocation"] in floor.running:
                held = row["old_invocation"]  # of a run that is just being begun
            if row["task_lifecycle"] == "Created":
                if held is not None:
                    floor.release(held)
                continue
            if held is not None:
                floor.rename(held, new)
                if settling := self._settling.pop(held, None):
                    settling.cancel()
            self._settling[new] = asyncio.create_task(self._settle(dict(row)))
        self.means.rings.ring(RESULTS)

    async def _settle(self, task: dict[str, Any]) -> None:
        try:
            await self._tell(task, await self._verdict(task))
        finally:
            self._settling.pop(task["invocation_id"], None)

    async def _verdict(self, task: dict[str, Any]) -> OrphanOutcome:
        until = self.means.clock.monotonic() + self.means.host_patience.total_seconds()
        while self.means.clock.monotonic() < until:
            try:
                return await self._ask(task)
            except Fault as fault:
                log.info("a target can't be asked", server=task["server_id"], why=fault.message)
            await self.means.clock.sleep(AGAIN)
        return OrphanOutcome.ABORTED if task["xact_id"] is None else OrphanOutcome.UNKNOWN

    async def _ask(self, task: dict[str, Any]) -> OrphanOutcome:
        """Ends what is left of it at its target first."""
        targets = self.means.targets
        server_connection = await targets.server_connection(
            self._line, task["server_id"], task["credential_id"]
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
        store, view = self.means.store, self.means.view
        while True:
            with contextlib.suppress(Fault):
                text = await self._line.value(
                    Q.settle, store.epoch, msgspec.json.encode([told]).decode()
                )
                break
            await self.means.clock.sleep(AGAIN)
        log.info("a lost task is settled", verdict=verdict.value, ordinal=task["ordinal"])
        view.settled += 1
        if view.floor is not None:
            view.floor.inbox += read_completion(text)
        self.means.rings.ring(RESULTS)


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
