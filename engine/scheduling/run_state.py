"""What the core holds of live runs: which targets wait, which run where, and what is due when.

A copy of the database, made anew whenever the Controller begins; nothing here speaks to anybody.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.scheduling.policies import RoundRobin
from engine.scheduling.resource_tree import Node, Path, Queue, ResourceTree
from engine.scheduling.runs import (
    LONG,
    OVER,
    SHALLOW,
    Completion,
    CompletionRow,
    Run,
    RunningTask,
    SlotQueue,
    StepRun,
    WaitingTarget,
)
from engine.scheduling.timers import Timers


class RunState:
    def __init__(self, slots: int) -> None:
        self.tree = ResourceTree(slots)
        self.policy: RoundRobin[StepRun] = RoundRobin(self.tree)
        self.runs: dict[UUID, Run] = {}
        self.running: dict[UUID, RunningTask] = {}  # by invocation
        self._places: dict[SlotQueue, None] = {}  # in which more could follow
        self._heard: Completion | None = None  # the last that were over
        self.inbox: list[CompletionRow] = []  # of lost hosts: to be heard like their own word
        self._timers: Timers[tuple[StepRun, WaitingTarget]] = Timers(_waits)

    def steps(self) -> Iterator[StepRun]:
        return (run.step for run in self.runs.values() if run.step is not None)

    def load(self, step: StepRun, row: Mapping[str, Any]) -> None:
        """A target of the step that is not over."""
        queue = self._queue(step, row)
        target = WaitingTarget(row["ordinal"], row["attempts"], queue)
        target.due, target.deadline = seconds(row["not_before"]), seconds(row["deadline"])
        if row["invocation_id"] is None:
            self.wait(step, target)
        else:
            self.hold(step, target, row["invocation_id"], row["host_id"])

    def wait(self, step: StepRun, target: WaitingTarget) -> None:
        step.waiting[target.ordinal] = target
        if target.due is None:
            self._enqueue(step, target)
        else:
            self._timers.add(target.due, (step, target))

    def hold(self, step: StepRun, target: WaitingTarget, invocation: UUID, host: UUID) -> None:
        """It was reserved before this core began."""
        self.tree.hold(target.queue.path, host)
        self.running[invocation] = RunningTask(step, target, host, invocation=invocation)
        step.busy += 1

    def pick(self) -> tuple[StepRun, WaitingTarget, UUID] | None:
        """The next target that may start and the host it goes to; its slots are taken."""
        found = self.policy.pick()
        if found is None:
            return None
        queue, ordinal = found
        host = self.tree.host_of(queue.path)
        assert host is not None
        step = queue.owner
        step.busy += 1
        return step, step.waiting.pop(ordinal), host.id

    def follow(self, most: int) -> Iterator[RunningTask]:
        """Targets that can be handed over before there is room, each to begin in the place of one that runs.

        They need what that one has, for they come from the same queue. Where others wait for room nobody follows.
        """
        if not self._places or self._is_contested:
            return
        places = [(place, place.last) for place in self._places if place.last is not None]
        queues = Counter(last.target.queue for _, last in places)
        shares = {queue: -(-len(queue.items) // many) for queue, many in queues.items()}
        for place, last in places:
            step, queue = last.step, last.target.queue
            depth = step.depth if _is_unlimited(queue.path) else min(step.depth, SHALLOW)
            if not queue.items or step.canceled or step.run.canceled:
                del self._places[place]
            elif (
                2 * place.many <= depth
                and not self.policy.closed(step.run.job_id)
                and self.tree.has_room_for(queue.path, last.host)
            ):
                share = min(shares[queue], len(queue.items))
                for _ in range(min(most, share, depth - place.many)):
                    most -= 1
                    place.many += 1
                    step.busy += 1
                    target = step.waiting.pop(queue.items.popleft())
                    behind = place.last or last
                    follower = RunningTask(step, target, last.host, behind, place=place)
                    behind.follower = place.last = follower
                    yield follower

    @property
    def _is_contested(self) -> bool:
        return len({step.run.job_id for step in self.steps() if step.waiting}) > 1

    def reserved(self, running: RunningTask) -> None:
        self.running[running.invocation] = running
        if running.leader is None:
            running.place.last = running
            self._places[running.place] = None

    def _left(self, running: RunningTask, now: float) -> None:
        """It is over, or was never begun: its place is its follower's, or free."""
        leader, follower, place = running.leader, running.follower, running.place
        place.many -= 1
        if leader is not None:
            leader.follower = follower
        if follower is not None:
            follower.leader = leader
            follower.since = now
        if place.last is running:
            place.last = leader
        if place.many:
            self._places[place] = None
        else:
            self._places.pop(place, None)
            self.policy.over(running.target.queue, running.host)

    def heard(self, told: CompletionRow, now: float) -> StepRun | None:
        """None when it is not held here: it was heard before."""
        running = self.running.pop(told.invocation, None)
        if running is None:
            return None
        step, target = running.step, running.target
        step.busy -= 1
        if told.needed and told.lifecycle in {"Canceled", "Failed"}:
            step.needs[target.ordinal] = told.needed
        self._learn_pace(running, now)
        self._left(running, now)
        if told.lifecycle not in OVER:
            target.attempts = told.attempts
            target.due, target.deadline = told.not_before, told.until
            self.wait(step, target)
        return step

    def _learn_pace(self, running: RunningTask, now: float) -> None:
        """Riders are heard together, and had their place one after the other."""
        step, place = running.step, running.place
        if running.leader is not None:  # it has waited in vain, and was given back
            step.took(LONG)
            return
        heard = self._heard
        if heard is None or heard.place is not place or heard.at != now:
            heard = self._heard = Completion(place, now, running.since, step.pace)
        heard.many += 1
        step.pace = heard.before
        step.took(now - heard.since, heard.many)

    def returned(self, invocation: UUID) -> None:
        """A reservation that came to nothing."""
        running = self.running.pop(invocation, None)
        if running is not None:
            running.step.busy -= 1
            self._left(running, running.since)
            running.target.due = None
            self.wait(running.step, running.target)

    def used_slots(self) -> Counter[UUID]:
        """Of each host; whoever follows another has none."""
        return Counter(each.host for each in self.running.values() if each.leader is None)

    def held(self, step: StepRun) -> dict[int, UUID]:
        """The invocations of what is reserved or runs, by its target."""
        return {
            running.target.ordinal: invocation
            for invocation, running in self.running.items()
            if running.step is step
        }

    def find(self, run: UUID, step_id: int, ordinal: int) -> UUID | None:
        """Under which invocation we hold a target, if we do."""
        step = self.runs[run].step if run in self.runs else None
        if step is None or step.plan.step_id != step_id:
            return None
        return self.held(step).get(ordinal)

    def rename(self, old: UUID, new: UUID) -> None:
        running = self.running[new] = self.running.pop(old)
        running.invocation = new

    def ended(self, step: StepRun, ordinal: int, invocation: UUID | None) -> None:
        """A target is over without a word of a host."""
        target = step.waiting.pop(ordinal, None)
        if target is not None:
            if ordinal in target.queue.items:
                target.queue.items.remove(ordinal)
        elif invocation is not None and (running := self.running.pop(invocation, None)):
            step.busy -= 1
            self._left(running, running.since)

    def all_ended(self, step: StepRun) -> None:
        """Nothing of the step waits any more."""
        self.policy.drop(step.queues.values())
        step.waiting.clear()

    def due(self, now: float) -> list[tuple[StepRun, WaitingTarget]]:
        """Waiting targets whose deadline has passed, which nobody picks; those whose time has come may start."""
        late: dict[WaitingTarget, StepRun] = {}
        for at, (step, target) in self._timers.due(now):
            if at == target.watched:
                target.watched = None
            if step.waiting.get(target.ordinal) is not target:
                continue
            if target.deadline is not None and target.deadline <= now:
                late[target] = step
            elif target.due is not None and target.due <= now:
                target.due = None
                self._enqueue(step, target)
        _withdraw(late)
        return [(step, target) for target, step in late.items()]

    def timed_out(self, step: StepRun, ordinal: int) -> None:
        """One that was late is over."""
        step.waiting.pop(ordinal, None)

    def spare(self, step: StepRun, target: WaitingTarget, until: float) -> None:
        """One that was late is not, by the database's reckoning: it may start, and is late again then."""
        target.due, target.deadline = None, until
        self._enqueue(step, target)

    def _enqueue(self, step: StepRun, target: WaitingTarget) -> None:
        self.policy.put(target.queue, target.ordinal)
        if target.deadline is not None and target.deadline != target.watched:
            target.watched = target.deadline
            self._timers.add(target.deadline, (step, target))

    @property
    def next_due(self) -> float | None:
        return self._timers.next

    def forget(self, run: Run) -> None:
        self.runs.pop(run.id, None)
        if run.step is not None:
            self.policy.drop(run.step.queues.values())
        # A deadline may be a day away: what no longer waits for it must not be kept so long.
        self._timers.tidy(expected=4 * sum(len(step.waiting) for step in self.steps()))

    def _queue(self, step: StepRun, row: Mapping[str, Any]) -> Queue[StepRun]:
        server, pool = row["server_id"], row["pool_name"]
        database = row["database_name"] or ""
        own = [
            step.limits.setdefault(
                where, Node(f"step '{step.plan.name}' at {where}", reason, slots)
            )
            for where, reason, slots in (
                (f"{server}/{pool or ''}", "MaxParallelism", step.plan.max_parallelism),
                (f"{server}//{database}", "DatabaseSlots", step.plan.slots_per_database),
            )
            if slots is not None
        ]
        path = self.tree.path(server, pool, database, *own)
        found = step.queues.get(path)
        if found is None:
            found = step.queues[path] = Queue(step, step.run.job_id, path)
        return found


def _waits(timer: tuple[StepRun, WaitingTarget]) -> bool:
    """One that does not gets another timer when it waits again."""
    step, target = timer
    if step.waiting.get(target.ordinal) is target:
        return True
    target.watched = None
    return False


def _is_unlimited(path: Path) -> bool:
    """Nobody has said how many may be at work at once, but for the server and the account as a whole."""
    return all(node.slots is None for node in path[2:])


def _withdraw(late: Iterable[WaitingTarget]) -> None:
    """From their queues, each of which is gone through once: there may be thousands in one."""
    gone: dict[Queue[StepRun], set[int]] = {}
    for target in late:
        gone.setdefault(target.queue, set()).add(target.ordinal)
    for queue, ordinals in gone.items():
        if queue.items:
            queue.items = deque(each for each in queue.items if each not in ordinals)


def seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
