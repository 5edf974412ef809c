"""Which of all waiting tasks starts next. A policy only orders; the resource tree says whether there is room."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Protocol, TypeVar
from uuid import UUID

from engine.scheduling.resource_tree import Node, Queue, ResourceTree

T = TypeVar("T")


class Policy(Protocol[T]):
    """Orders queues. `queue.items` holds the ordinals of its waiting targets.

    A queue is in one of three places: with the policy when a task of it may start, parked in the tree when
    a node is full, or in neither when it is empty. Only the tree parks and unparks.
    """

    def put(self, queue: Queue[T], ordinal: int, *, first: bool = False) -> None:
        """Appends a target to the queue. `first`: it goes on from the step before, and precedes targets of others."""

    def pick(self) -> tuple[Queue[T], int] | None:
        """Removes the next target and takes its slots in the tree; None: no task can start now."""

    def release(self, queue: Queue[T], host: UUID) -> None:
        """A task of the queue finished on the host: its slots are free again."""

    def wake(self, queues: Iterable[Queue[T]]) -> None:
        """The tree has unparked these queues, since a limit or a host changed."""

    def drop(self, queues: Iterable[Queue[T]]) -> None:
        """Empties the queues: none of their targets starts any more."""

    def why(self, queue: Queue[T]) -> Node | None:
        """The node that is full; None: the queue only waits until the policy picks it."""


class RoundRobin(Policy[T]):
    """Jobs take turns; within a job every database has one task before any has two.

    A database whose task just finished comes first: its session is still open. So does a target that goes on from the
    step before: a chain is finished where it was started.
    """

    def __init__(self, tree: ResourceTree) -> None:
        self._tree = tree
        self._jobs: OrderedDict[Hashable, OrderedDict[Queue[T], None]] = OrderedDict()

    def put(self, queue: Queue[T], ordinal: int, *, first: bool = False) -> None:
        queue.items.append(ordinal)
        if len(queue.items) == 1 and queue.parked_at is None:
            self._add(queue, first=first)

    def pick(self) -> tuple[Queue[T], int] | None:
        turns = len(self._jobs)
        while turns > 0 and self._tree.instance.room > 0:
            job, queues = next(iter(self._jobs.items()))
            self._jobs.move_to_end(job)
            if self._tree.is_paused(job):
                turns -= 1
                continue
            task = self._pick_from(queues)
            if task is not None:
                return task
            turns = len(self._jobs)  # nothing of this job can start: it was removed
        return None

    def release(self, queue: Queue[T], host: UUID) -> None:
        self.wake(self._tree.release(queue, host))
        if queue.items and queue.parked_at is None:
            self._add(queue, first=True)

    def wake(self, queues: Iterable[Queue[T]]) -> None:
        for queue in queues:
            if queue.items:
                self._add(queue)
            else:
                self._pass_on(queue)

    def drop(self, queues: Iterable[Queue[T]]) -> None:
        for queue in queues:
            queue.items.clear()
            self._tree.unpark(queue)
            self._remove(queue)

    def why(self, queue: Queue[T]) -> Node | None:
        return self._tree.blocker(queue)

    def _pick_from(self, queues: OrderedDict[Queue[T], None]) -> tuple[Queue[T], int] | None:
        while queues:
            queue = next(iter(queues))
            if queue.items and self._tree.take(queue):
                ordinal = queue.items.popleft()
                if queue.items:
                    queues.move_to_end(queue)
                else:
                    self._remove(queue)
                return queue, ordinal
            self._remove(queue)
            self._pass_on(queue)
        return None

    def _add(self, queue: Queue[T], *, first: bool = False) -> None:
        queues = self._jobs.setdefault(queue.job, OrderedDict())
        queues[queue] = None
        if first:
            queues.move_to_end(queue, last=False)

    def _remove(self, queue: Queue[T]) -> None:
        queues = self._jobs.get(queue.job)
        if queues is not None:
            queues.pop(queue, None)
            if not queues:
                del self._jobs[queue.job]

    def _pass_on(self, queue: Queue[T]) -> None:
        for other in self._tree.pass_on(queue):
            self._add(other)
