"""Watches the hosts, and resolves the tasks of lost ones.

A host that died, or has missed three heartbeats, gets no more tasks and its reports do not count any more:
its tasks get new invocation ids. Reserved tasks wait again. For a running task the communicator ends the
session at the target and reads whether the transaction committed: yes, no, or unknown. It retries a target
that can't be reached until the host must have stopped by itself.
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
from engine.core.orphaned_attempt import OrphanOutcome, recorded_outcome, resolve_orphan
from engine.core.runs.execution_store import Q
from engine.core.service import Service
from engine.db import membership
from engine.db.control_connection import ControlConnection
from engine.db.membership import HostRow
from engine.db.wakeups import RESULTS
from engine.model.verification import VERIFIED
from engine.scheduling.runs import read_items
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)

POLL_INTERVAL = timedelta(seconds=1)
MAX_MISSED_HEARTBEATS = 3
RETRY_INTERVAL = timedelta(seconds=2)
MAX_PARALLEL_TARGETS = 8  # whose orphaned attempts are resolved at once
MESSAGES = {
    OrphanOutcome.COMMITTED: "It committed; its host was lost before it reported that.",
    OrphanOutcome.ABORTED: "Its host was lost; nothing was committed.",
    OrphanOutcome.UNKNOWN: "Its host was lost, and whether it committed is unknown.",
}


class Communicator(Service):
    name = "communicator"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._connection = ControlConnection(context.store)
        self._silence: dict[UUID, tuple[Any, float]] = {}  # last heartbeat, and seconds since then
        self._polled_at = context.clock.monotonic()
        self._resolving: dict[UUID, asyncio.Task[None]] = {}  # by invocation
        self._parallel = asyncio.Semaphore(MAX_PARALLEL_TARGETS)

    @property
    def pause(self) -> timedelta:
        return min(POLL_INTERVAL, self.context.heartbeat)

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            for task in self._resolving.values():
                task.cancel()
            self._connection.disconnect()

    async def run_once(self) -> None:
        cluster_state = self.context.cluster_state
        before, now = cluster_state.hosts, await membership.hosts(self.context.store)
        for host in now.keys() - before.keys():
            log.info("host registered", host=host, pid=now[host].pid, slots=now[host].slots)
        for host in before.keys() - now.keys():
            log.info("host left", host=host, pid=before[host].pid)
        cluster_state.set_hosts(now)
        dead = {id for id, host in now.items() if _died(host)}
        seconds = self._seconds_since_poll()
        silent = {id for id, host in now.items() if self._is_silent(host, seconds)}
        for host in (dead | silent) - cluster_state.silent:
            log.warning("host is lost", host=host, died=host in dead)
        if before.keys() != now.keys() or cluster_state.silent != dead | silent:
            self.context.wakeups.notify(RESULTS)  # its tasks may go to other hosts
        cluster_state.silent = dead | silent
        run_state = cluster_state.run_state
        busy = {running.host for running in run_state.running.values()} if run_state else set()
        for host in busy & (cluster_state.silent | (busy - now.keys())):
            await self._revoke(host)
        for host in dead - busy:
            await membership.end_lost_host(self.context.store, host)
        self.status = f"{len(now)} hosts" + (
            f", {len(cluster_state.silent)} lost" * bool(cluster_state.silent)
        )

    def _seconds_since_poll(self) -> float:
        """At most two pauses: during an outage of the control database no host can write a heartbeat."""
        before, self._polled_at = self._polled_at, self.context.clock.monotonic()
        return min(self._polled_at - before, 2 * self.pause.total_seconds())

    def _is_silent(self, host: HostRow, seconds: float) -> bool:
        beat, silent = self._silence.get(host.host_id, (None, 0.0))
        silent = silent + seconds if beat == host.heartbeat_at else 0.0
        self._silence[host.host_id] = (host.heartbeat_at, silent)
        return silent > MAX_MISSED_HEARTBEATS * self.context.heartbeat.total_seconds()

    async def _revoke(self, host: UUID) -> None:
        """Gives the tasks of a lost host new invocation ids; releases or resolves each."""
        run_state = self.context.cluster_state.run_state
        assert run_state is not None
        if all(
            id in self._resolving for id, each in run_state.running.items() if each.host == host
        ):
            return
        for row in await self._connection.fetch(Q.disown, self.context.store.epoch, host):
            new = row["invocation_id"]
            old = run_state.find(row["job_execution_id"], row["step_id"], row["ordinal"])
            if old is None and row["old_invocation"] in run_state.running:
                old = row["old_invocation"]  # its run is just beginning
            if row["task_lifecycle"] == "Created":
                if old is not None:
                    run_state.release(old)
                continue
            if old is not None:
                run_state.rename(old, new)
                if resolving := self._resolving.pop(old, None):
                    resolving.cancel()
            self._resolving[new] = asyncio.create_task(self._resolve(dict(row)))
        self.context.wakeups.notify(RESULTS)

    async def _resolve(self, task: dict[str, Any]) -> None:
        try:
            await self._record(task, await self._outcome(task))
        finally:
            self._resolving.pop(task["invocation_id"], None)

    async def _outcome(self, task: dict[str, Any]) -> OrphanOutcome:
        if task["xact_id"] == VERIFIED:  # its session at the target was given back
            return OrphanOutcome.COMMITTED
        until = self.context.clock.monotonic() + self.context.host_patience.total_seconds()
        while self.context.clock.monotonic() < until:
            try:
                return await self._read_outcome(task)
            except Fault as fault:
                log.info("target is unavailable", server=task["server_id"], why=fault.message)
            await self.context.clock.sleep(RETRY_INTERVAL)
        return recorded_outcome(task["xact_id"]) or OrphanOutcome.UNKNOWN

    async def _read_outcome(self, task: dict[str, Any]) -> OrphanOutcome:
        """Ends the session of the attempt first."""
        targets = self.context.targets
        server_connection = await targets.server_connection(
            self._connection, task["server_id"], task["credential_id"]
        )
        if server_connection is None:
            committed = recorded_outcome(task["xact_id"]) is OrphanOutcome.COMMITTED
            return OrphanOutcome.COMMITTED if committed else OrphanOutcome.UNKNOWN
        async with targets.admin_lock(server_connection.server.server_id), self._parallel:
            return await resolve_orphan(
                server_connection,
                task["database_name"],
                backend_pid=task["backend_pid"],
                old_invocation=task["old_invocation"],
                xact_id=task["xact_id"],
                started=task["start_time"],
            )

    async def _record(self, task: dict[str, Any], outcome: OrphanOutcome) -> None:
        guarded = task["guard"] and task["xact_id"] != AUTOCOMMIT
        repeatable = task["idempotent"] or guarded
        committed, unknown = outcome is OrphanOutcome.COMMITTED, outcome is OrphanOutcome.UNKNOWN
        report = {
            "run_day": task["run_day"],
            "job_execution_id": task["job_execution_id"],
            "step_id": task["step_id"],
            "ordinal": task["ordinal"],
            "attempt": task["attempt"],
            "invocation_id": task["invocation_id"],
            "lifecycle": "Succeeded" if committed else "Failed",
            "retry": not committed and (not unknown or repeatable),
            "reason": None if committed else "OutcomeUnknown" if unknown else "HostLost",
            "message": MESSAGES[outcome],
            "last_message": MESSAGES[outcome],
        }
        if outcome is not OrphanOutcome.ABORTED:
            report |= next_phase(task, outcome)
        report["fingerprint"] = report["reason"]
        store, cluster_state = self.context.store, self.context.cluster_state
        while True:
            with contextlib.suppress(Fault):
                text = await self._connection.value(
                    Q.settle, store.epoch, msgspec.json.encode([report]).decode()
                )
                break
            await self.context.clock.sleep(RETRY_INTERVAL)
        log.info("resolved orphaned attempt", outcome=outcome.value, ordinal=task["ordinal"])
        cluster_state.settled += 1
        if cluster_state.run_state is not None:
            cluster_state.run_state.inbox += read_items(text)
        self.context.wakeups.notify(RESULTS)


def next_phase(task: dict[str, Any], outcome: OrphanOutcome) -> dict[str, Any]:
    """Fields of a report, if the next attempt, which does not count, does not send the script."""
    if task["verify"] and task["xact_id"] != VERIFIED:
        reason = "OutcomeUnknown" if outcome is OrphanOutcome.UNKNOWN else "VerifyNotAnswered"
        return _begins_next(outcome, "verify", "the verify query", reason, outcome.value)
    if task["output"] and outcome is OrphanOutcome.COMMITTED:
        return _begins_next(outcome, "output", "the output", "OutputFailed", VERIFIED)
    return {}


def _begins_next(
    outcome: OrphanOutcome, phase: str, what: str, reason: str, script: str
) -> dict[str, Any]:
    message = f"{MESSAGES[outcome].rstrip('.')}; {what} follows."
    return {
        "lifecycle": "Failed",
        "retry": False,
        "again": True,
        "reason": reason,
        "message": message,
        "last_message": message,
        "phase": phase,
        "checkpoint": {"script": script},
    }


def _died(host: HostRow) -> bool:
    """True only when that is certain, which it can be for processes on this machine."""
    if host.host_name != socket.gethostname():
        return False
    try:
        os.kill(host.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
