"""The core's copy of live runs: which targets wait, which tasks run where, and what is due when.

It is loaded from the database whenever the Controller starts, and does no I/O.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from engine.scheduling.policies import Policy, RoundRobin
from engine.scheduling.resource_tree import Node, Path, Queue, ResourceTree
from engine.scheduling.runs import (
    FINISHED,
    CompletionItem,
    Run,
    RunningTask,
    SlotQueue,
    StepRun,
    WaitingTarget,
)
from engine.scheduling.timers import Timers

NOT_STARTED = {"attempts": 0, "not_before": None, "deadline": None, "invocation_id": None}


class RunState:
    def __init__(
        self, slots: int, policy: Callable[[ResourceTree], Policy[StepRun]] = RoundRobin
    ) -> None:
        self.tree = ResourceTree(slots)
        self.policy = policy(self.tree)
        self.runs: dict[UUID, Run] = {}
        self.running: dict[UUID, RunningTask] = {}  # by invocation
        self._prefetching: dict[SlotQueue, None] = {}  # slots that may take further tasks
        self.same_error_limit = 0  # of the account: so many equal errors in a row halt a step
        self.inbox: list[CompletionItem] = []  # of lost hosts, to be applied like other completions
        self.unlisted: dict[StepRun, list[WaitingTarget]] = {}  # listed before they are retried
        self._timers: Timers[tuple[StepRun, WaitingTarget]] = Timers(_waits)

    def steps(self) -> Iterator[StepRun]:
        return (step for run in self.runs.values() for step in run.live)

    def load(self, step: StepRun, row: Mapping[str, Any]) -> None:
        """Adds an unfinished target of the step."""
        if step.rollout is not None:
            step.rollout.target_loaded(row["ordinal"])
        queue = self._queue(step, row)
        target = WaitingTarget.of(row, queue)
        if row["invocation_id"] is None:
            self.wait(step, target)
        else:
            self.restore(step, target, row["invocation_id"], row["host_id"])

    def wait(self, step: StepRun, target: WaitingTarget) -> None:
        step.waiting[target.ordinal] = target
        if target.due is None:
            self._enqueue(step, target)
        else:
            self._timers.add(target.due, (step, target))

    def restore(self, step: StepRun, target: WaitingTarget, invocation: UUID, host: UUID) -> None:
        """Adds a task that was reserved before this core started."""
        self.tree.hold(target.queue.path, host)
        running = RunningTask(step, target, host, SlotQueue(id=invocation), invocation)
        running.slot.tasks.append(running)
        self.running[invocation] = running
        step.busy += 1

    def pick(self) -> tuple[StepRun, WaitingTarget, UUID] | None:
        """The next target that may start and the host it goes to; its slots are taken."""
        picked = self.policy.pick()
        if picked is None:
            return None
        queue, ordinal = picked
        host = self.tree.host_of(queue.path)
        assert host is not None
        step = queue.owner
        step.busy += 1
        return step, step.waiting.pop(ordinal), host.id

    def prefetch(self, most: int) -> Iterator[RunningTask]:
        """Targets that are sent to a host before their slot is free, each into the slot of a running task.

        All tasks of a slot come from one queue, so they need the same nodes. While tasks of several jobs
        wait there is no prefetch: it would bypass the policy.
        """
        if not self._prefetching or self._is_contested:
            return
        slots = [(slot, slot.tasks[-1]) for slot in self._prefetching]
        sharing = Counter(last.target.queue for _, last in slots)
        shares = {queue: -(-len(queue.items) // many) for queue, many in sharing.items()}
        for slot, last in slots:
            step, queue = last.step, last.target.queue
            # Tasks of a batch are InProgress together, which a limit on parallelism must not show.
            depth = (
                step.prefetch_depth if _is_unlimited(queue.path) else min(step.prefetch_depth, 2)
            )
            if not queue.items or step.canceled or step.run.canceled:
                del self._prefetching[slot]
            elif (
                2 * len(slot.tasks) <= depth
                and not self.tree.is_paused(step.run.job_id)
                and self.tree.has_room_for(queue.path, last.host)
            ):
                share = min(shares[queue], len(queue.items))
                for _ in range(min(most, share, depth - len(slot.tasks))):
                    most -= 1
                    step.busy += 1
                    target = step.waiting.pop(queue.items.popleft())
                    task = RunningTask(step, target, last.host, slot)
                    slot.tasks.append(task)
                    yield task

    @property
    def _is_contested(self) -> bool:
        return len({step.run.job_id for step in self.steps() if step.waiting}) > 1

    def reserved(self, running: RunningTask, now: float) -> None:
        slot = running.slot
        self.running[running.invocation] = running
        if not slot.tasks:
            slot.tasks.append(running)
            slot.id, slot.since, slot.batch_began = running.invocation, now, now
            self._prefetching[slot] = None

    def _vacate(self, running: RunningTask) -> None:
        """Removes the task from its slot, which the next task of the slot takes over."""
        slot = running.slot
        slot.tasks.remove(running)
        if slot.tasks:
            self._prefetching[slot] = None
        else:
            self._prefetching.pop(slot, None)
            self.policy.release(running.target.queue, running.host)

    def apply_result(self, completion: CompletionItem, now: float) -> StepRun | None:
        """None when the task is not held here: its result was applied before."""
        running = self.running.pop(completion.invocation_id, None)
        if running is None:
            return None
        step, target = running.step, running.target
        step.busy -= 1
        if completion.cancel_method and completion.lifecycle in {"Canceled", "Failed"}:
            step.needs[target.ordinal] = completion.cancel_method
        running.measure(now)
        self._vacate(running)
        if completion.lifecycle in FINISHED:
            self._ended(step, target.ordinal, completion.lifecycle, now, completion.sqlstate)
        else:
            target.attempts = completion.attempts
            target.due, target.deadline = completion.not_before, completion.deadline
            self.wait(step, target)
        return step

    def release(self, invocation: UUID) -> None:
        """Gives back a reservation that did not start."""
        running = self.running.pop(invocation, None)
        if running is not None:
            running.step.busy -= 1
            self._vacate(running)
            running.target.due = None
            self.wait(running.step, running.target)

    def used_slots(self) -> Counter[UUID]:
        """By host; a prefetched task has no slot of its own."""
        return Counter(each.host for each in self.running.values() if not each.is_prefetched)

    def invocations(self, step: StepRun) -> dict[int, UUID]:
        """Invocations of reserved and running tasks of the step, by ordinal."""
        return {
            running.target.ordinal: invocation
            for invocation, running in self.running.items()
            if running.step is step
        }

    def find(self, run: UUID, step_id: int, ordinal: int) -> UUID | None:
        """The invocation of a reserved or running task of the target."""
        step = self.runs[run].find(step_id) if run in self.runs else None
        return None if step is None else self.invocations(step).get(ordinal)

    def rename(self, old: UUID, new: UUID) -> None:
        running = self.running[new] = self.running.pop(old)
        running.invocation = new

    def remove(
        self,
        step: StepRun,
        ordinal: int,
        invocation: UUID | None = None,
        lifecycle: str = "Canceled",
    ) -> None:
        """A target ended without a report of a host."""
        target = step.waiting.pop(ordinal, None)
        if target is not None:
            if step.previous is not None:
                step.previous.remove(ordinal)
            self._ended(step, ordinal, lifecycle, 0.0)
            if ordinal in target.queue.items:
                target.queue.items.remove(ordinal)
        elif invocation is not None and (running := self.running.pop(invocation, None)):
            self._ended(step, ordinal, lifecycle, 0.0)
            step.busy -= 1
            self._vacate(running)

    def remove_waiting(self, step: StepRun) -> None:
        """Removes every waiting target of the step."""
        self.policy.drop(step.queues.values())
        step.waiting.clear()

    def due(self, now: float) -> list[tuple[StepRun, WaitingTarget]]:
        """Waiting targets whose deadline has passed; targets whose back-off has passed are enqueued."""
        expired: dict[WaitingTarget, StepRun] = {}
        for at, (step, target) in self._timers.due(now):
            if at == target.watched:
                target.watched = None
            if step.waiting.get(target.ordinal) is not target:
                continue
            if target.deadline is not None and target.deadline <= now:
                expired[target] = step
            elif target.due is not None and target.due <= now:
                target.due = None
                if not step.may_join(target):
                    self._enqueue(step, target)
                else:
                    target.listing = True
                    self.unlisted.setdefault(step, []).append(target)
                    self._watch(step, target)
        _remove_from_queues(expired)
        return [(step, target) for target, step in expired.items()]

    def expire(self, step: StepRun, ordinal: int, now: float) -> None:
        """The deadline of a waiting target has passed: it ended."""
        if step.waiting.pop(ordinal, None) is not None:
            self._ended(step, ordinal, "TimedOut", now)

    def postpone(self, step: StepRun, target: WaitingTarget, until: float) -> None:
        """The database still has time for the target: it may start, and its deadline is checked again then."""
        target.due, target.deadline = None, until
        self._enqueue(step, target)

    def hold_waiting(self, step: StepRun) -> None:
        """The rollout of the step was halted: none of its waiting targets starts."""
        self.policy.drop(step.queues.values())

    def enqueue_waiting(self, step: StepRun) -> None:
        """A wave was opened, or the step goes on after a halt: its waiting targets may start."""
        for target in step.waiting.values():
            if target.due is None:
                self._enqueue(step, target)

    def follow(self, step: StepRun) -> None:
        """The step is loaded: targets of the step before go on to it."""
        place = step.run.live.index(step)
        if place and step.previous is not None:
            step.run.live[place - 1].next = step

    def step_ended(self, step: StepRun, lifecycle: str) -> None:
        self.policy.drop(step.queues.values())
        if step.next is not None and step.next.previous is not None:
            for ordinal in step.next.previous.step_ended(lifecycle):
                self._enqueue(step.next, step.next.waiting[ordinal])

    def _ended(
        self, step: StepRun, ordinal: int, lifecycle: str, now: float, sqlstate: str | None = None
    ) -> None:
        if step.rollout is not None:
            step.rollout.target_ended(ordinal, lifecycle, sqlstate, now)
        if step.next is not None and step.next.previous is not None:
            started = step.next.previous.target_ended(ordinal, lifecycle)
            if started is not None:
                self._enqueue(step.next, step.next.waiting[started], first=True)

    def _enqueue(self, step: StepRun, target: WaitingTarget, *, first: bool = False) -> None:
        if step.may_start(target.ordinal) and not target.listing:
            self.policy.put(target.queue, target.ordinal, first=first)
        self._watch(step, target)

    def _watch(self, step: StepRun, target: WaitingTarget) -> None:
        if target.deadline is not None and target.deadline != target.watched:
            target.watched = target.deadline
            self._timers.add(target.deadline, (step, target))

    def retry(self, step: StepRun, target: WaitingTarget) -> None:
        """It could not be listed again: it is tried like any other target."""
        target.listing = False
        if step.waiting.get(target.ordinal) is target and target.ordinal not in target.queue.items:
            self._enqueue(step, target)

    def replace(self, step: StepRun, ordinal: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """The databases of a server that could not be listed before, as the database has written them."""
        for row in rows:
            if not row["skipped"]:
                self.load(step, {**NOT_STARTED, **row})
        self.remove(step, ordinal, None)

    @property
    def next_due(self) -> float | None:
        return self._timers.next

    def remove_run(self, run: Run) -> None:
        self.runs.pop(run.id, None)
        for step in run.live:
            self.policy.drop(step.queues.values())
        # A deadline may be a day away: timers of finished targets must not be kept so long.
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
        queue = step.queues.get(path)
        if queue is None:
            queue = step.queues[path] = Queue(step, step.run.job_id, path)
        return queue


def _waits(timer: tuple[StepRun, WaitingTarget]) -> bool:
    """A target that does not wait gets another timer when it waits again."""
    step, target = timer
    if step.waiting.get(target.ordinal) is target:
        return True
    target.watched = None
    return False


def _is_unlimited(path: Path) -> bool:
    """No limit below the server and the account as a whole."""
    return all(node.slots is None for node in path[2:])


def _remove_from_queues(targets: Iterable[WaitingTarget]) -> None:
    """Removes targets from their queues in one pass of each queue: one may hold thousands."""
    removed: dict[Queue[StepRun], set[int]] = {}
    for target in targets:
        removed.setdefault(target.queue, set()).add(target.ordinal)
    for queue, ordinals in removed.items():
        if queue.items:
            queue.items = deque(each for each in queue.items if each not in ordinals)
