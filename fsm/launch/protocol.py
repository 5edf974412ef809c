"""The messages between workloads, launchers and the Workload API: names and structs only."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

BASE = "/api/v1/workload"
INCOMPATIBLE = (
    "Incompatible: "  # prefix of the last report of a workload whose version does not fit
)


class Kind(StrEnum):
    ENGINE = "engine"
    HOST = "host"
    COMMAND = "command"


class Priority(StrEnum):
    """Two queues, not an order: neither waits for the other."""

    HIGH = "high"
    DEFAULT = "default"


class State(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    LAUNCHED = "launched"
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in {State.SUCCESS, State.FAILURE, State.CANCELLED}


class Reason(StrEnum):
    """Why a workload failed or was cancelled."""

    NOT_CLAIMED = "not_claimed"  # no launcher took it, and none was there
    NOT_STARTED = "not_started"  # its launcher took it and did not start it
    SILENT = "silent"  # no heartbeat
    TOO_OLD = "too_old"  # a command that runs for too long
    START_FAILED = "start_failed"  # the process could not be made
    EXITED = "exited"  # the process ended without a word
    NO_RESULT = "no_result"  # a command said success and gave no result
    REPORTED = "reported"  # it said so itself
    SUPERSEDED = "superseded"  # a newer one with the same mutex key: never retried
    FENCED = "fenced"  # a newer epoch takes its place
    REQUESTED = "requested"  # its end was requested
    ACCOUNT_DELETED = "account_deleted"
    ACCOUNT_PAUSED = "account_paused"
    DRAINED = "drained"  # its launcher was stopped for good

    @property
    def wanted(self) -> bool:
        """Ended on purpose: no retry, and not counted as a failure."""
        return self in WANTED


WANTED = frozenset(
    {
        Reason.SUPERSEDED,
        Reason.FENCED,
        Reason.REQUESTED,
        Reason.ACCOUNT_DELETED,
        Reason.ACCOUNT_PAUSED,
    }
)


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Camel case in JSON; unknown names are refused."""


class Spec(Wire, frozen=True):
    """How the process is started; no secret is ever in it."""

    arguments: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    memory: int | None = None  # bytes; a limit for its address space
    files: int | None = None  # open files at once


class Start(Wire, frozen=True):
    """The start file: private, read once by the process, gone when that is."""

    id: UUID
    kind: Kind
    url: str  # of the Workload API
    token: str
    heartbeat: float  # seconds
    patience: float  # seconds without an answer, then it must end itself
    epoch: int | None = None
    account_uid: UUID | None = None
    attempt: int = 1
    spec: Spec = Spec()
    secrets: dict[str, str] = {}


class Create(Wire, frozen=True):
    workload_id: UUID
    spec: Spec = Spec()
    labels: dict[str, str] = {}
    mutex_key: str | None = None
    priority: Priority = Priority.HIGH


class Named(Wire, frozen=True):
    workload_id: UUID


class Beat(Wire, frozen=True):
    workload_id: UUID
    report: dict[str, Any] | None = None


class Success(Wire, frozen=True):
    workload_id: UUID
    result: dict[str, Any] | None = None


class Failure(Wire, frozen=True):
    workload_id: UUID
    message: str = ""
    reason: Reason = Reason.REPORTED


class Cancel(Wire, frozen=True):
    workload_id: UUID
    reason: Reason = Reason.REQUESTED
    message: str = ""


class Gone(Wire, frozen=True):
    workload_id: UUID
    exit_code: int | None = None


class Poll(Wire, frozen=True):
    quantity: int
    priority: Priority = Priority.DEFAULT


class Depth(Wire, frozen=True):
    priority: Priority | None = None


class Listing(Wire, frozen=True):
    state: tuple[State, ...] | None = None
    claimed_by: str | None = None
    limit: int = 100


class Clean(Wire, frozen=True):
    limit: int = 1000


class Claimed(Wire, frozen=True):
    claimed: bool


class Shown(Wire, frozen=True):
    """A workload as the Workload API shows it: each step with its time, no secret, no digest."""

    id: UUID
    kind: Kind
    state: State
    priority: Priority
    launch_group: str
    account_uid: UUID | None
    mutex_key: str | None
    spec: Spec
    labels: dict[str, str]
    epoch: int | None
    reason: Reason | None
    source: str | None
    message: str | None
    result: dict[str, Any] | None
    report: dict[str, Any] | None
    attempt: int
    claimed_by: str | None
    created_at: datetime
    queued_at: datetime
    claimed_at: datetime | None
    launched_at: datetime | None
    running_at: datetime | None
    heartbeat_at: datetime | None
    ended_at: datetime | None
    gone_at: datetime | None
    exit_code: int | None
    deadline: datetime | None


class Page(Wire, frozen=True):
    workloads: tuple[Shown, ...]


class Error(msgspec.Struct, frozen=True):
    """A sentence for people and a code for programs."""

    message: str
    code: str = ""
