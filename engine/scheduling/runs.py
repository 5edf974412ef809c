"""Live runs as the core holds them: steps, waiting targets, and tasks in the slots of their hosts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from engine.model.task import PREFETCH_LIMIT
from engine.scheduling.resource_tree import Node, Path, Queue

OVER = frozenset({"Succeeded", "SucceededWithSkipped", "Failed", "TimedOut", "Canceled", "Skipped"})
PREFETCH_DEPTH = 32  # tasks in one slot: the running one and those prefetched
NEEDS = ("nothing", "protocol", "pg_cancel_backend", "pg_terminate_backend")  # weakest first
NOBODY = UUID(int=0)


class StepDefinition(msgspec.Struct, frozen=True, rename="camel"):
    """A step as its version says."""

    step_id: int
    name: str
    target_group_id: UUID
    target_group_name: str
    timeout_seconds: int
    max_parallelism: int | None = None  # in each pool, and at each server beside its pools
    options: dict[str, Any] = {}
    has_output: bool = False
    credential_id: UUID | None = None

    @property
    def slots_per_database(self) -> int | None:
        return self.options.get("slotsPerDatabase")


class ReachedStep(msgspec.Struct, frozen=True, rename="camel"):
    step_id: int
    lifecycle: str
    snapshot_id: UUID | None = None
    cancel_requested: bool = False


class CompletionRow(msgspec.Struct, frozen=True):
    """What became of a task, as a completion says it."""

    invocation: UUID = msgspec.field(name="i")
    lifecycle: str = msgspec.field(name="l")  # of its target
    attempts: int = msgspec.field(name="a")
    not_before: float | None = msgspec.field(name="b", default=None)
    cancel_method: str | None = msgspec.field(name="n", default=None)
    until: float | None = msgspec.field(name="u", default=None)  # None: its time has not begun


read_completion = msgspec.json.Decoder(list[CompletionRow]).decode


@dataclass(eq=False, slots=True)
class Run:
    id: UUID
    job_id: UUID
    job_name: str
    version: int
    day: Any  # the partition of all that belongs to it
    steps: tuple[StepDefinition, ...]
    reached: dict[int, ReachedStep]
    begun: bool
    canceled: bool
    step: "StepRun | None" = None  # the one that is at work
    queued: bool = False  # waits for an older run of its job
    rests_until: float = 0.0  # it broke us: nobody moves it before

    def next(self) -> StepDefinition | None:
        """The first step that is not over; None behind the last, and behind one that stops the run."""
        for plan in self.steps:
            seen = self.reached.get(plan.step_id)
            if seen is None or seen.lifecycle not in OVER:
                return plan
            if not goes_on(seen.lifecycle) and plan.options.get("onFailure") != "continue":
                return None
        return None


def goes_on(lifecycle: str) -> bool:
    return lifecycle in {"Succeeded", "SucceededWithSkipped", "Skipped"}


@dataclass(eq=False, slots=True)
class StepRun:
    run: Run
    plan: StepDefinition
    planned: bool = False
    canceled: bool = False
    busy: int = 0  # targets that are reserved or run
    waiting: "dict[int, WaitingTarget]" = field(default_factory=dict)
    queues: dict[Path, Queue["StepRun"]] = field(default_factory=dict)
    limits: dict[str, Node] = field(default_factory=dict)  # of its own parallelism
    needs: dict[int, str] = field(default_factory=dict)  # what cancelling took, by target
    seconds: float | None = None  # that the last finished task held its slot

    @property
    def prefetch_depth(self) -> int:
        """So many tasks in one slot that the last one waits half of PREFETCH_LIMIT."""
        if self.seconds is None:
            return 1
        shortest = PREFETCH_LIMIT / 2 / PREFETCH_DEPTH
        return max(1, int(PREFETCH_LIMIT / 2 / max(self.seconds, shortest)))

    @property
    def over(self) -> bool:
        return self.planned and not self.waiting and not self.busy

    def needed(self, ordinal: int | None) -> str:
        """What cancelling one target took, or all of them."""
        needs = self.needs.values() if ordinal is None else [self.needs.get(ordinal, NEEDS[0])]
        return strongest(needs)


def strongest(needs: Iterable[str]) -> str:
    return max(needs, key=NEEDS.index, default=NEEDS[0])


@dataclass(eq=False, slots=True)
class WaitingTarget:
    ordinal: int
    attempts: int
    queue: Queue[StepRun]
    due: float | None = None  # not before, by the database's clock
    deadline: float | None = None  # None: its time has not begun
    watched: float | None = None  # the deadline that a timer stands for


@dataclass(eq=False, slots=True)
class SlotQueue:
    """The tasks of one slot, in their order: the first one holds the slot, the others are prefetched."""

    tasks: "list[RunningTask]" = field(default_factory=list)
    id: UUID = NOBODY  # the invocation of the task that the slot was reserved for
    since: float = 0.0  # when the first task got the slot, by the database's clock


@dataclass(eq=False, slots=True)
class RunningTask:
    """A task that is reserved or runs."""

    step: StepRun
    target: WaitingTarget
    host: UUID
    slot: SlotQueue = field(default_factory=SlotQueue)
    invocation: UUID = NOBODY

    @property
    def is_prefetched(self) -> bool:
        return self.slot.tasks[0] is not self
