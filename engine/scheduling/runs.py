"""Live runs as the core sees them: steps, targets that wait and tasks, which stand in places."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from engine.scheduling.resource_tree import Node, Path, Queue

OVER = frozenset({"Succeeded", "SucceededWithSkipped", "Failed", "TimedOut", "Canceled", "Skipped"})
BRISK = 0.5  # seconds that the last of those who follow each other should have to wait
LONG = 2 * BRISK
DEEPEST = 32  # tasks in one place, with the one that has its slots
SHALLOW = 2  # the same where somebody limited how many are at work at once
MEMORY = 0.1  # how much the last task says about the pace of its step
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
    needed: str | None = msgspec.field(name="n", default=None)
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
    pace: float | None = None  # seconds that a task had its place, of late

    @property
    def depth(self) -> int:
        """So many tasks may be in one place."""
        if self.pace is None:
            return 1
        return min(DEEPEST, int(BRISK / max(self.pace, BRISK / DEEPEST)))

    def took(self, seconds: float, many: int = 1) -> None:
        """So many, one after the other. What took very long says no more than what took long."""
        each = min(seconds / many, LONG)
        before = each if self.pace is None else self.pace
        self.pace = each + (before - each) * (1 - MEMORY) ** many

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
    """The slots of a task, which those behind it inherit."""

    many: int = 1
    last: "RunningTask | None" = None


@dataclass(eq=False, slots=True)
class Completion:
    """Of those in a place that were over together: since when it was theirs, how many, and the pace before."""

    place: SlotQueue
    at: float
    since: float
    before: float | None
    many: int = 0


@dataclass(eq=False, slots=True)
class RunningTask:
    """Reserved or running. Whoever follows another has no slots of its own until that one is over."""

    step: StepRun
    target: WaitingTarget
    host: UUID
    leader: "RunningTask | None" = None
    follower: "RunningTask | None" = None
    invocation: UUID = NOBODY
    since: float = 0.0  # when its place became its own, by the database's clock
    place: SlotQueue = field(default_factory=SlotQueue)
