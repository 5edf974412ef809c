"""Live runs as the core holds them: steps, waiting targets, and tasks in the slots of their hosts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self
from uuid import UUID

import msgspec

from engine.model.task import PREFETCH_LIMIT
from engine.scheduling.previous_targets import SUCCESSES, PreviousTargets
from engine.scheduling.resource_tree import Node, Path, Queue
from engine.scheduling.rollout import StepRollout
from engine.scheduling.run_attempts import RunAttemptRules

FINISHED = frozenset(
    {"Succeeded", "SucceededWithSkipped", "Failed", "TimedOut", "Canceled", "Skipped"}
)
PREFETCH_DEPTH = 32  # tasks in one slot: the running one and those prefetched
CANCEL_METHODS = (
    "nothing",
    "protocol",
    "pg_cancel_backend",
    "pg_terminate_backend",
)  # weakest first
NO_INVOCATION = UUID(int=0)


class StepDefinition(msgspec.Struct, frozen=True, rename="camel"):
    """A step as its job version defines it."""

    step_id: int
    name: str
    timeout_seconds: int
    target_group_id: UUID | None = None
    target_group_name: str | None = None  # None: each run names its targets
    max_parallelism: int | None = None  # in each pool, and at each server outside of its pools
    options: dict[str, Any] = {}
    credential_id: UUID | None = None

    @property
    def slots_per_database(self) -> int | None:
        return self.options.get("slotsPerDatabase")

    @property
    def order_by(self) -> str | None:
        order: str | None = (self.options.get("rollout") or {}).get("orderBy")
        return order

    @property
    def continues(self) -> bool:
        """The run goes on when the step has failed."""
        return self.options.get("onFailure") == "continue"

    @property
    def is_per_target(self) -> bool:
        return self.options.get("advance") == "perTarget"


class ReachedStep(msgspec.Struct, frozen=True, rename="camel"):
    step_id: int
    lifecycle: str
    snapshot_id: UUID | None = None
    cancel_requested: bool = False
    aborted: bool = False  # an operator ended the rollout: no step follows


class CompletionItem(msgspec.Struct, frozen=True):
    """The outcome of a task: a completion_item, as SQL names that type."""

    invocation_id: UUID
    lifecycle: str  # of its target
    attempts: int
    not_before: float | None = None
    deadline: float | None = None  # None: no attempt was tried
    cancel_method: str | None = None
    kind: str = "result"
    # Of the attempt
    reason: str | None = None
    sqlstate: str | None = None
    fingerprint: str | None = None


read_items = msgspec.json.Decoder(list[CompletionItem]).decode


class RunPhase(StrEnum):
    """Where a run stands; RunLifecycle has the moves between phases."""

    CREATED = "created"  # it has not begun
    BETWEEN_STEPS = "between_steps"
    IN_STEPS = "in_steps"  # a step is live, or several of a chain
    BETWEEN_ATTEMPTS = "between_attempts"  # its live steps wait for the next attempt
    ENDED = "ended"


class StepPhase(StrEnum):
    """Where a live step stands; RunLifecycle has the moves between phases."""

    ENTERED = "entered"
    RESOLVING = "resolving"  # servers list its targets
    PLANNED = "planned"  # its targets are in memory only
    LOADED = "loaded"  # its tasks can be picked; they are written together with its targets
    QUEUED = "queued"  # its targets are in the database: tasks wait and run
    LEFT = "left"  # it has ended, or its run may not begin yet


@dataclass(eq=False, slots=True)
class Run:
    id: UUID
    job_id: UUID
    job_name: str
    version: int
    day: Any  # the partition of its rows
    steps: tuple[StepDefinition, ...]
    reached: dict[int, ReachedStep]
    begun: bool
    canceled: bool
    live: "list[StepRun]" = field(default_factory=list)  # in their order; a chain if several
    overlaps: bool = False  # waits for an older run of its job
    chosen: Literal["rerun", "plan", "caller"] | None = (
        None  # what chose its targets; None: the groups
    )
    limit: int | None = None  # so many targets of each step
    retries: int = 0  # how often its targets were retried before it was loaded
    outdated: bool = False  # the database has a target that is missing here
    attempt_rules: RunAttemptRules | None = None  # None: the run has one pass
    next_attempt: float | None = None  # when it begins, by the database's clock; None: none waits
    pass_ended: bool = False  # no further attempt follows: its live steps end
    ended: bool = False
    retry_at: float = (
        0.0  # after an unexpected error: it is not advanced before, by the monotonic clock
    )

    @property
    def phase(self) -> "RunPhase":
        if self.ended:
            return RunPhase.ENDED
        if self.live:
            waits = self.next_attempt is not None
            return RunPhase.BETWEEN_ATTEMPTS if waits else RunPhase.IN_STEPS
        return RunPhase.BETWEEN_STEPS if self.begun else RunPhase.CREATED

    @property
    def aborted(self) -> bool:
        """An operator ended a rollout of the run: nothing further starts."""
        return any(step.aborted for step in self.live) or any(
            step.aborted for step in self.reached.values()
        )

    @property
    def is_stopping(self) -> bool:
        """A cancellation or an abort ends it, or some of its live steps."""
        return self.canceled or self.aborted or any(step.canceled for step in self.live)

    def step_entered(self, plan: StepDefinition) -> None:
        """A pass over further targets; a new step begins only if the steps that waited were cancelled."""
        self.pass_ended = False
        if plan.step_id not in self.reached:
            self.next_attempt = None

    def find(self, step_id: int) -> "StepRun | None":
        """A live step."""
        return next((step for step in self.live if step.plan.step_id == step_id), None)

    def before(self, plan: StepDefinition) -> StepDefinition | None:
        """The step from which targets go on to this one on their own: both are of one chain."""
        place = self.steps.index(plan)
        return self.steps[place - 1] if place and plan.is_per_target else None

    def is_in_chain(self, plan: StepDefinition) -> bool:
        """Servers that such a step could not list are not listed again: its targets belong to those of another step."""
        place = self.steps.index(plan)
        return any(each.is_per_target for each in self.steps[place : place + 2])

    def next(self) -> StepDefinition | None:
        """The first unfinished step; None after the last step, and after a step that stops the run.

        A failure does not keep targets that have succeeded from the next step of the chain.
        """
        stopped, planned = False, False
        for plan in self.steps:
            reached = self.reached.get(plan.step_id)
            if reached is None or reached.lifecycle not in FINISHED:
                return plan if not stopped or (plan.is_per_target and planned) else None
            if reached.aborted:
                return None
            stopped = stopped or (reached.lifecycle not in SUCCESSES and not plan.continues)
            planned = reached.snapshot_id is not None
        return None

    def next_of_chain(self) -> StepDefinition | None:
        """The step that targets of the last live step go on to, unless that is not queued or this one has ended."""
        place = self.steps.index(self.live[-1].plan) + 1
        if (
            place == len(self.steps)
            or not self.steps[place].is_per_target
            or not self.live[-1].is_queued
        ):
            return None
        plan = self.steps[place]
        reached = self.reached.get(plan.step_id)
        if reached is None:
            return None if self.canceled or self.aborted else plan
        return None if reached.lifecycle in FINISHED else plan


@dataclass(eq=False, slots=True)
class StepRun:
    run: Run
    plan: StepDefinition
    phase: StepPhase = StepPhase.ENTERED
    canceled: bool = False
    busy: int = 0  # targets that are reserved or run
    waiting: "dict[int, WaitingTarget]" = field(default_factory=dict)
    queues: dict[Path, Queue["StepRun"]] = field(default_factory=dict)
    limits: dict[str, Node] = field(default_factory=dict)  # of its own parallelism
    needs: dict[int, str] = field(default_factory=dict)  # cancel methods, by ordinal
    seconds: float | None = None  # that a task of the last batch of results held its slot
    rollout: StepRollout | None = None  # while it is loaded or queued
    aborted: bool = False  # an operator ended its rollout
    previous: PreviousTargets | None = None  # of a step with advance perTarget, while it is queued
    next: "StepRun | None" = None  # the queued step that its targets go on to

    @property
    def prefetch_depth(self) -> int:
        """So many tasks in one slot that the last one waits half of PREFETCH_LIMIT."""
        if self.seconds is None:
            return 1
        shortest = PREFETCH_LIMIT / 2 / PREFETCH_DEPTH
        return max(1, int(PREFETCH_LIMIT / 2 / max(self.seconds, shortest)))

    @property
    def is_queued(self) -> bool:
        return self.phase is StepPhase.QUEUED

    @property
    def finished(self) -> bool:
        return self.is_queued and not self.waiting and not self.busy

    @property
    def is_idle(self) -> bool:
        """All of its unfinished targets wait for the step before, or it will have none."""
        if not self.is_queued:
            return self.canceled
        held = 0 if self.previous is None else self.previous.waiting
        return self.busy == 0 and len(self.waiting) == held

    def may_join(self, target: "WaitingTarget") -> bool:
        """Whether the target is a server that is listed again, so that its databases join the step.

        Not in a chain, whose targets are those of another step, and not as the whole first wave of a rollout: that
        would have ended without an attempt, and the databases would all start at once.
        """
        is_first_wave = (
            self.rollout is not None and self.rollout.rules.begins_with_one and target.ordinal == 1
        )
        return (
            target.unlisted is not None
            and not is_first_wave
            and not self.run.is_in_chain(self.plan)
        )

    def may_start(self, ordinal: int) -> bool:
        return (self.rollout is None or self.rollout.may_start(ordinal)) and (
            self.previous is None or self.previous.may_start(ordinal)
        )

    def needed(self, ordinal: int | None) -> str:
        """The strongest cancel method that one target needed, or any of them."""
        needs = (
            self.needs.values() if ordinal is None else [self.needs.get(ordinal, CANCEL_METHODS[0])]
        )
        return strongest(needs)


def strongest(needs: Iterable[str]) -> str:
    return max(needs, key=CANCEL_METHODS.index, default=CANCEL_METHODS[0])


@dataclass(eq=False, slots=True)
class WaitingTarget:
    ordinal: int
    attempts: int
    queue: Queue[StepRun]
    due: float | None = None  # not before, by the database's clock
    deadline: float | None = None  # None: no attempt has begun
    watched: float | None = None  # the deadline that has a timer
    # A server that could not be listed, or one of its databases: its id and the name of the database or "".
    unlisted: tuple[str, str] | None = None
    listing: bool = False  # it is being listed, and must not start meanwhile

    @classmethod
    def of(cls, row: Mapping[str, Any], queue: Queue[StepRun]) -> Self:
        target = cls(row["ordinal"], row["attempts"], queue)
        target.due, target.deadline = _seconds(row["not_before"]), _seconds(row["deadline"])
        if row.get("unlisted"):
            target.unlisted = row["server_id"].lower(), row["database_name"] or ""
        return target


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


@dataclass(eq=False, slots=True)
class SlotQueue:
    """The tasks of one slot, in their order: the first one holds the slot, the others are prefetched."""

    tasks: "list[RunningTask]" = field(default_factory=list)
    id: UUID = NO_INVOCATION  # the invocation of the task that the slot was reserved for
    since: float = 0.0  # when the first task got the slot, by the database's clock
    batch_began: float = 0.0  # when the tasks of the last batch of results got the slot
    batch_size: int = 0


@dataclass(eq=False, slots=True)
class RunningTask:
    """A task that is reserved or runs."""

    step: StepRun
    target: WaitingTarget
    host: UUID
    slot: SlotQueue = field(default_factory=SlotQueue)
    invocation: UUID = NO_INVOCATION

    @property
    def is_prefetched(self) -> bool:
        return self.slot.tasks[0] is not self

    def measure(self, now: float) -> None:
        """How long a task held the slot. Results of a batch arrive together and share its duration."""
        slot = self.slot
        if self.is_prefetched:  # the host released it after PREFETCH_LIMIT
            self.step.seconds = PREFETCH_LIMIT
            return
        if now > slot.since:
            slot.batch_began, slot.since, slot.batch_size = slot.since, now, 0
        slot.batch_size += 1
        if slot.since > slot.batch_began:
            self.step.seconds = (slot.since - slot.batch_began) / slot.batch_size
