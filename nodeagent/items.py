"""The part of the protocol about what lies in an account: definitions and executions, by path.

A kind is the type below the account, as in `jobs/steps`; a path holds the names from the account
down. Documents and conditions are those of the functions in the control database.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

Kind = Literal[
    "credentials",
    "targetGroups",
    "jobs",
    "jobs/versions",
    "jobs/steps",
    "jobs/plans",
    "jobs/versions/steps",
    "executions",
    "targets",
    "jobs/executions",
    "jobs/executions/steps",
    "jobs/executions/targets",
    "jobs/executions/steps/targets",
    "jobs/executions/steps/targets/attempts",
    "privateEndpoints",
    "webhooks",
    "webhooks/deliveries",
    "activityLog",
]
# Of a run, of one of its targets, or of an attempt there
About = Literal[
    "summary",
    "errors",
    "results",
    "resultColumns",
    "commandTags",
    "messages",
    "why",
    "events",
    "attemptResults",
    "attemptMessages",
]
Document = dict[str, Any]


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class GetItem(_Frozen, frozen=True):
    kind: Kind
    path: tuple[str, ...]


class ListItems(_Frozen, frozen=True):
    """`path` is that of what the list belongs to; `after` is the `next` of the page before."""

    kind: Kind
    path: tuple[str, ...]
    after: Any = None
    top: int = 100
    filters: Document = {}


class ReadExecution(_Frozen, frozen=True):
    """An execution, also of a deleted job, or a report on it; `options` are the reader's.

    With an empty path and kind `events`: the events of the account.
    """

    kind: Kind | About
    path: tuple[str, ...]
    options: Document = {}


class PutCredential(_Frozen, frozen=True):
    name: str
    username: str
    secret: str | None = None  # sealed for the account, or a reference; None keeps what is there
    servers: tuple[str, ...] | None = None  # that it is for, ("*",) = any; None keeps what is there
    condition: Document = {}


class PutTargetGroup(_Frozen, frozen=True):
    name: str
    document: Document
    condition: Document = {}


class PutJob(_Frozen, frozen=True):
    name: str
    document: Document
    condition: Document = {}


class PutJobWithSteps(_Frozen, frozen=True):
    """The document is one of PutJob, or with `is_patch` a merge-patch of it; a step is one of PutStep with its name."""

    name: str
    document: Document
    steps: tuple[Document, ...]
    condition: Document = {}
    is_patch: bool = False


class PutStep(_Frozen, frozen=True):
    job: str
    name: str
    document: Document
    condition: Document = {}


class PutPrivateEndpoint(_Frozen, frozen=True):
    name: str
    document: Document
    condition: Document = {}


class DecidePrivateEndpoint(_Frozen, frozen=True):
    name: str
    status: Literal["Approved", "Rejected"]
    server_id: str  # as it was when its people were asked


class PutWebhook(_Frozen, frozen=True):
    name: str
    document: Document
    secret: str | None = None  # sealed for the account; None keeps what is there
    condition: Document = {}


class SendTestEvent(_Frozen, frozen=True):
    name: str


class ReplayDeliveries(_Frozen, frozen=True):
    name: str
    event_ids: tuple[UUID, ...] | None = None  # None: all dead letters


class PatchItem(_Frozen, frozen=True):
    """`patch` is a merge-patch of a document as PutJob and PutStep have it."""

    kind: Literal["jobs", "jobs/steps"]
    path: tuple[str, ...]
    patch: Document
    condition: Document = {}


class DeleteItem(_Frozen, frozen=True):
    kind: Kind
    path: tuple[str, ...]
    condition: Document = {}
    options: Document = {}


class StartJob(_Frozen, frozen=True):
    job: str
    execution_id: UUID | None = None  # None: the control database chooses
    document: Document = {}


class CancelExecution(_Frozen, frozen=True):
    """All of it, or one step, or one target of the step."""

    job: str
    execution_id: UUID
    reason: str | None = None
    step: str | None = None
    target: str | None = None


class ContinueExecution(_Frozen, frozen=True):
    """Goes on with an execution that is halted or between two waves, or ends it."""

    job: str
    execution_id: UUID
    abort: bool = False


class RerunExecution(_Frozen, frozen=True):
    """A run on targets of an earlier one: `only` how they ended, or `targets` by their ids."""

    job: str
    execution_id: UUID
    document: Document = {}


class RetryTarget(_Frozen, frozen=True):
    """A target that ended without success starts again, in the same execution."""

    job: str
    execution_id: UUID
    step: str
    target: str


class RunQuery(_Frozen, frozen=True):
    """A run of the system job `adhoc`: script, target group, timeout, options, overrides."""

    document: Document


class Ask(_Frozen, frozen=True):
    """A question that only the engine can answer, such as what a target group resolves to."""

    request_id: UUID
    kind: Literal["resolve", "why", "plan", "doctor", "login"]
    args: Document


class ReadRequest(_Frozen, frozen=True):
    request_id: UUID


class ReadServerUsers(_Frozen, frozen=True):
    """What uses these servers: groups and steps that name them, executions that run there."""

    server_ids: tuple[str, ...]


class ReadReachedServers(_Frozen, frozen=True):
    """The servers that these lead to; outputs: those of the current steps of jobs. Unknown names lead nowhere."""

    kind: Literal["jobs", "outputs", "targetGroups", "plans", "executions"]
    names: tuple[str, ...]


class ReadJournal(_Frozen, frozen=True):
    command_id: UUID


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Item(_Result, frozen=True, rename="camel"):
    name: str
    path: tuple[str, ...]  # as stored
    properties: Document
    row_version: int | None = None  # None: users can't change it
    created_by: str | None = None
    created_at: str | None = None
    modified_by: str | None = None
    modified_at: str | None = None


class Items(_Result, frozen=True):
    items: tuple[Item, ...]
    next: Any = None


class ExecutionRead(_Result, frozen=True):
    answer: Document


class Written(_Result, frozen=True):
    created: bool
    item: Item


class Deleted(_Result, frozen=True):
    deleted: bool


class Canceled(_Result, frozen=True):
    canceled: bool


class TestEventSent(_Result, frozen=True, rename="camel"):
    test_id: UUID


class DeliveriesReplayed(_Result, frozen=True):
    replayed: int


class Asked(_Result, frozen=True):
    pass


class RequestRead(_Result, frozen=True):
    answered: bool
    answer: Any = None


class StepUser(_Result, frozen=True):
    job: str
    step: str


class RunningExecution(_Result, frozen=True):
    job: str
    execution: UUID


class ServerUsers(_Result, frozen=True):
    groups: tuple[str, ...]
    steps: tuple[StepUser, ...]
    running: tuple[RunningExecution, ...]


class ReachedServers(_Result, frozen=True, rename="camel"):
    names: tuple[str, ...]
    any_server: bool  # rows that are read at run time may name each server of the directory
    server_ids: tuple[str, ...] = ()  # of the targets that executions have


class JournalRead(_Result, frozen=True):
    known: bool  # the command took effect


class Diagnose(_Frozen, frozen=True):
    pass


class LockHolder(_Result, frozen=True):
    """A session of another role; PostgreSQL does not show everything of it."""

    pid: int
    user: str | None = None
    application: str | None = None
    since: datetime | None = None  # its transaction, or the session
    waited_since: datetime | None = None  # by a session of the account; None: just now by none


class Diagnosed(_Result, frozen=True):
    holders: tuple[LockHolder, ...]
    public_connects: bool
    close: str  # the statements that end that
