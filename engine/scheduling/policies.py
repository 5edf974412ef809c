"""Which of all waiting tasks starts next. A policy only orders; whether there is room, the tree says.

policy.put(queue, ordinal)        # waits from now on
policy.pick() -> Queue, ordinal   # and its slots are taken; None: nothing can start now
policy.over(queue, host)          # its slots are free again
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar
from uuid import UUID

from engine.scheduling.resource_tree import Node, Queue, ResourceTree

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """Jobs take turns; within a job every database has one task before any has two.

    A database whose task is just over comes first: its session is still open.
    """

    def __init__(self, tree: ResourceTree) -> None:
        self._tree = tree
        self._jobs: OrderedDict[Hashable, OrderedDict[Queue[T], None]] = OrderedDict()
        self._closed: set[Hashable] = set()  # jobs that may start nothing

    def put(self, queue: Queue[T], ordinal: int) -> None:
        queue.items.append(ordinal)
        if len(queue.items) == 1 and queue.at is None:
            self._open(queue)

    def pick(self) -> tuple[Queue[T], int] | None:
        turns = len(self._jobs)
        while turns > 0 and self._tree.instance.room > 0:
            job, queues = next(iter(self._jobs.items()))
            self._jobs.move_to_end(job)
            if job in self._closed:
                turns -= 1
                continue
            found = self._of(queues)
            if found is not None:
                return found
            turns = len(self._jobs)  # this one has nothing that can start: it left
        return None

    def over(self, queue: Queue[T], host: UUID) -> None:
        self.wake(self._tree.release(queue.path, host))
        if queue.items and queue.at is None:
            self._open(queue, first=True)

    def wake(self, queues: Iterable[Queue[T]]) -> None:
        for queue in queues:
            queue.at = None
            if queue.items:
                self._open(queue)
            else:
                self._leave(queue)

    def drop(self, queues: Iterable[Queue[T]]) -> None:
        """Nothing of these starts any more."""
        for queue in queues:
            queue.items.clear()
            if queue.at is not None:
                queue.at.parked.pop(queue, None)
                queue.at = None
            self._shut(queue)

    def close(self, jobs: set[Hashable]) -> None:
        """These start nothing until they are left out again."""
        self._closed = set(jobs)

    def closed(self, job: Hashable) -> bool:
        return job in self._closed

    def why(self, queue: Queue[T]) -> Node | None:
        """The node that is full; None: it only has to wait for its turn."""
        if queue.at is not None:
            return queue.at
        return next((node for node in queue.path if node.room <= 0), None)

    def _of(self, queues: OrderedDict[Queue[T], None]) -> tuple[Queue[T], int] | None:
        while queues:
            queue = next(iter(queues))
            full = self._tree.take(queue.path) if queue.items else None
            if queue.items and full is None:
                ordinal = queue.items.popleft()
                if queue.items:
                    queues.move_to_end(queue)
                else:
                    self._shut(queue)
                return queue, ordinal
            self._shut(queue)
            if full is not None:
                queue.at = full
                full.parked[queue] = None
            self._leave(queue)
        return None

    def _open(self, queue: Queue[T], *, first: bool = False) -> None:
        queues = self._jobs.setdefault(queue.job, OrderedDict())
        queues[queue] = None
        if first:
            queues.move_to_end(queue, last=False)

    def _shut(self, queue: Queue[T]) -> None:
        queues = self._jobs.get(queue.job)
        if queues is not None:
            queues.pop(queue, None)
            if not queues:
                del self._jobs[queue.job]

    def _leave(self, queue: Queue[T]) -> None:
        """It was woken for room that it can't use: others may."""
        for node in self._tree.nodes(queue.path):
            if node is not queue.at:
                for other in node.wake():
                    other.at = None
                    self._open(other)
