"""Why an account is slow, stuck, unhealthy, disabled or failed, in words, and what to do about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fsm.account_runtime import INCOMPATIBLE
from fsm.launch.protocol import Kind, State
from fsm.launch.workload import Workload
from fsm.store import Machine
from nodeagent.items import Diagnosed, LockHolder
from workflows.model.resource import Resource

STEPS = {
    "reserving": "checks that a node agent and a launcher can serve the account",
    "preparing_database": "installs the schema jobs in the control database through a node agent",
    "queuing_instance": "asks for an engine in the workload queue",
    "starting_instance": "waits for the engine's first heartbeat",
    "ready": "idle: the engine runs",
    "updating": "applies the changed settings",
    "recovering": "starts a new engine after the old one was lost",
    "disabled": "idle: the control database can't be used; checks again by itself",
    "draining": "lets running work end before the deletion",
    "stopping_instance": "ends the processes of the account",
    "releasing": "removes roles and secrets",
    "failed": "idle: the creation failed",
    "delete_failed": "idle: the deletion failed; tries again by itself",
}
OF_ENGINE = {INCOMPATIBLE, "EngineStartFailed"}  # then nothing is wrong with the database


@dataclass(frozen=True)
class Facts:
    account: Resource
    machine: Machine | None
    workloads: list[Workload]
    launchers: int
    agents: int
    now: datetime
    database: Diagnosed | None = None  # None: it could not be asked

    @property
    def engine(self) -> Workload | None:
        return next((each for each in self.workloads if each.kind is Kind.ENGINE), None)

    @property
    def hosts(self) -> list[Workload]:
        return [each for each in self.workloads if each.kind is Kind.HOST]

    @property
    def has_host(self) -> bool:
        """Whether a host is alive to run tasks."""
        return any(
            each.state is State.RUNNING and not (each.beat_by and each.beat_by < self.now)
            for each in self.hosts
        )

    @property
    def holders(self) -> tuple[LockHolder, ...]:
        return self.database.holders if self.database else ()

    @property
    def state(self) -> str | None:
        return self.account.observed.get("state")


def document(facts: Facts) -> dict[str, Any]:
    machine, engine = facts.machine, facts.engine
    advice = advise(facts)
    return {
        "state": facts.state,
        "healthy": not advice and facts.state == "Ready" and facts.has_host,
        "paused": bool(facts.account.observed.get("paused")),
        "step": machine and machine.state,
        "does": STEPS.get(machine.state) if machine else None,
        "since": _time(machine.state_entered_at) if machine else None,
        "waitsFor": machine and machine.waiting_for,
        "tries": machine.attempt if machine else 0,
        "givesUpAt": _time(machine.deadline_at) if machine else None,
        "looksAgainAt": _time(machine.due_at) if machine else None,
        "lastError": (machine and machine.last_error) or facts.account.observed.get("lastError"),
        "conditions": facts.account.observed.get("conditions") or [],
        "engine": engine and _workload(engine),
        "hosts": [_workload(each) for each in facts.hosts],
        "liveLaunchers": facts.launchers,
        "liveNodeAgents": facts.agents,
        "lockHolders": [_holder(each) for each in facts.holders],
        "advice": advice,
        "hardening": _hardening(facts),
    }


def advise(facts: Facts) -> list[str]:
    """Most likely cause first; empty when there is nothing to do."""
    problems = []
    if facts.agents == 0:
        problems.append(
            "No node agent is alive for this server, so nothing can be done in the control database. "
            "Start one beside it: `muster nodeagent`; with `muster up`, look at its log nodeagent.log."
        )
    if facts.launchers == 0:
        problems.append(
            "No launcher is alive, so no engine can be started. Start one: `muster launcher`; with "
            "`muster up`, look at its log launcher.log."
        )
    return (
        problems
        + _about_engine(facts)
        + _about_hosts(facts)
        + _about_locks(facts)
        + _about_database(facts)
        + _about_failure(facts)
    )


def _about_engine(facts: Facts) -> list[str]:
    engine, machine = facts.engine, facts.machine
    if engine is None or machine is None or machine.state in {"failed", "releasing"}:
        return []
    message = None
    if engine.misfit:
        message = (
            f"The engine that launcher '{engine.claimed_by}' started and the schema of the control "
            f"database do not fit: {engine.misfit} If the engine is too old, upgrade Muster there; the "
            "account recovers by itself. If the schema is, it is upgraded by itself where the server has an "
            "administratorLogin; a PATCH of the account upgrades it at once."
        )
    elif engine.state is State.PENDING and facts.launchers:
        message = (
            "The engine waits for a launcher with capacity. Raise MUSTER_LAUNCHER_PARALLELISM or "
            "MUSTER_MAX_RUNNING_ENGINE, add memory, or start another launcher."
        )
    elif engine.state in {State.CLAIMED, State.LAUNCHED}:
        message = (
            f"The engine was taken by launcher '{engine.claimed_by}' and has not reported yet; "
            f"read its log: logs/workloads/{engine.id}.log in the launcher's directory."
        )
    elif engine.state.over and machine.state in {"starting_instance", "recovering"}:
        message = (
            f"The last engine ended ({engine.reason}: {engine.message or 'no message'}); "
            f"read its log: logs/workloads/{engine.id}.log."
        )
    elif engine.state is State.RUNNING and engine.beat_by and engine.beat_by < facts.now:
        message = "The engine sends no heartbeat; the monitor replaces it."
    return [message] if message else []


def _about_hosts(facts: Facts) -> list[str]:
    if facts.state != "Ready" or facts.has_host:
        return []
    logs = ", ".join(f"logs/workloads/{each.id}.log" for each in facts.hosts[:3])
    return [
        "No host of the account is alive, so nothing can run. The monitor starts new ones with the next "
        f"engine{f'; read their logs: {logs}' if logs else ''}."
    ]


def _about_locks(facts: Facts) -> list[str]:
    return [
        f"The session {each.pid} of '{each.user}' (application '{each.application or ''}', since "
        f"{_time(each.since) or _time(each.waited_since) or 'an unknown time'}) holds a lock that the account "
        f"needs. If it is not needed, end it in the control database: SELECT pg_terminate_backend({each.pid});"
        for each in facts.holders
    ]


def _hardening(facts: Facts) -> list[str]:
    """What works, and could be made safer."""
    if facts.database is None or not facts.database.public_connects:
        return []
    return [
        "Every login of the server may connect to the control database and hold locks that the account needs. "
        f"Let the owner of the database run: {facts.database.close}"
    ]


def _holder(holder: LockHolder) -> dict[str, Any]:
    return {
        "pid": holder.pid,
        "user": holder.user,
        "application": holder.application,
        "since": _time(holder.since),
        "waitedSince": _time(holder.waited_since),
    }


def _about_database(facts: Facts) -> list[str]:
    codes = {each["type"] for each in facts.account.observed.get("conditions") or []}
    if facts.machine is None or facts.machine.state != "disabled" or codes & OF_ENGINE:
        return []
    if codes & {"ControlDatabaseRestored", "ControlDatabaseCloned"}:
        return [
            "The control database is not in the state that the account left it in. Look at what ran "
            "since then; if this database is meant, POST …/acknowledge (`muster account acknowledge`). "
            "Nothing starts before that."
        ]
    return [
        "The control database can't be reached or was dropped. Restore it under its old name; the "
        "account recovers by itself. Or delete the account."
    ]


def _about_failure(facts: Facts) -> list[str]:
    machine = facts.machine
    if machine is None or machine.state not in {"failed", "delete_failed"}:
        if machine is not None and machine.last_error:
            error = machine.last_error
            return [f"The last try failed: {error['code']}: {error['message']}"]
        return []
    error = machine.last_error or facts.account.observed.get("lastError") or {}
    how = (
        "PUT the account again, or delete it" if machine.state == "failed" else "DELETE tries again"
    )
    return [f"{error.get('code', 'Failed')}: {error.get('message', '')} Fix that, then: {how}."]


def _workload(workload: Workload) -> dict[str, Any]:
    return {
        "id": str(workload.id),
        "state": workload.state.value,
        "reason": workload.reason and workload.reason.value,
        "message": workload.message,
        "epoch": workload.epoch,
        "launcher": workload.claimed_by,
        "queuedAt": _time(workload.queued_at),
        "claimedAt": _time(workload.claimed_at),
        "launchedAt": _time(workload.launched_at),
        "runningAt": _time(workload.running_at),
        "lastHeartbeat": _time(workload.heartbeat_at),
        "endedAt": _time(workload.ended_at),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None
