"""A workload as a row: its specification, its state, and when that changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from fsm.launch.protocol import INCOMPATIBLE, Kind, Priority, Reason, Shown, Spec, State
from muster.core.db import Row
from muster.core.errors import Conflict

# Who reported the end; the monitor and the machines have names of their own.
BY_ITSELF, BY_LAUNCHER = "workload", "launcher"


class Over(Conflict):
    """The move is refused: the workload is not, or no longer, where it starts from."""

    default_code = "WorkloadGone"


@dataclass(frozen=True, kw_only=True)
class NewWorkload:
    kind: Kind
    launch_group: str
    id: UUID = field(default_factory=uuid4)  # a derived one makes a repeat harmless
    account_uid: UUID | None = None
    mutex_key: str | None = None
    priority: Priority = Priority.DEFAULT
    epoch: int | None = None
    spec: Spec = field(default_factory=Spec)
    labels: Mapping[str, str] = field(default_factory=dict)
    sealed: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Workload:
    id: UUID
    kind: Kind
    account_uid: UUID | None
    mutex_key: str | None
    priority: Priority
    launch_group: str
    spec: Spec
    sealed: dict[str, str] = field(repr=False)
    labels: dict[str, str]
    epoch: int | None
    state: State
    reason: Reason | None
    source: str | None
    message: str | None
    result: dict[str, Any] | None
    report: dict[str, Any] | None
    attempt: int
    claimed_by: str | None
    token_digest: bytes | None = field(repr=False)
    created_at: datetime
    queued_at: datetime
    visible_at: datetime
    claimed_at: datetime | None
    launched_at: datetime | None
    running_at: datetime | None
    heartbeat_at: datetime | None
    ended_at: datetime | None
    gone_at: datetime | None
    exit_code: int | None
    claim_by: datetime | None
    start_by: datetime | None
    beat_by: datetime | None
    end_by: datetime | None

    @property
    def deadline(self) -> datetime | None:
        """When the monitor ends it for silence; None after its end."""
        limits = (self.claim_by, self.start_by, self.beat_by, self.end_by)
        return min((limit for limit in limits if limit), default=None)

    @property
    def misfit(self) -> str | None:
        """In its own words, why its version and the control database's do not go together."""
        message = self.message or ""
        own = self.reason is Reason.REPORTED and message.startswith(INCOMPATIBLE)
        return message.removeprefix(INCOMPATIBLE) if own else None

    @property
    def version(self) -> str | None:
        """Version of its program, if it has reported one."""
        return (self.report or {}).get("version")


NAMES = tuple(each.name for each in fields(Workload))
CONVERTED = {"kind": Kind, "priority": Priority, "state": State}


def seal_context(id: UUID, name: str) -> str:
    """What a secret of a workload is sealed to: it opens for no other."""
    return f"workload/{id}/{name}"


def workload_of(row: Row) -> Workload:
    values = {name: row[name] for name in NAMES}
    values |= {name: kind(values[name]) for name, kind in CONVERTED.items()}
    values["reason"] = Reason(values["reason"]) if values["reason"] else None
    values["spec"] = msgspec.convert(values["spec"], Spec)
    return Workload(**values)


def shown(workload: Workload) -> Shown:
    return Shown(**{name: getattr(workload, name) for name in Shown.__struct_fields__})
