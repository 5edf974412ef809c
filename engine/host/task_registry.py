"""The tasks that a host holds: their cancel tokens, and the queue of each slot."""

from collections.abc import Callable, Iterable
from uuid import UUID

from engine.attempt.cancel_token import CANCELED, CancelToken
from engine.model.task import Task


class TaskRegistry:
    def __init__(self) -> None:
        self._tokens: dict[UUID, CancelToken] = {}
        self._waiting: dict[UUID, Task] = {}  # not started
        self._started: set[UUID] = set()  # their start was reported
        self._slots: dict[UUID, list[Task]] = {}  # the first one runs, the others are prefetched
        self._slot_of: dict[UUID, UUID] = {}
        self.intended: set[UUID] = set()  # their commit intent was reported

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def add(self, task: Task, slot: UUID | None) -> bool:
        """True when the slot is in use: the task is prefetched. Without a slot it gets one of its own."""
        id = task.invocation_id
        slot = slot or id
        self._waiting[id] = task
        self._tokens[id] = CancelToken()
        self._slot_of[id] = slot
        queue = self._slots.setdefault(slot, [])
        queue.append(task)
        return len(queue) > 1

    def token(self, task: Task) -> CancelToken:
        return self._tokens[task.invocation_id]

    def cancel(self, invocation: UUID) -> None:
        if invocation in self._tokens:
            self._tokens[invocation].cancel(CANCELED)

    def cancel_all(self, reason: str) -> None:
        for token in self._tokens.values():
            token.cancel(reason)

    def is_wanted(self, task: Task) -> bool:
        """It has not started and is not cancelled."""
        id = task.invocation_id
        return id in self._waiting and not self._tokens[id].reason

    def detach(self, task: Task) -> bool:
        """Removes a prefetched task from its slot. True if it was still queued and must be released."""
        id = task.invocation_id
        queue = self._slots.get(self._slot_of.get(id, id), [])
        if task not in queue[1:]:
            return False
        queue.remove(task)
        del self._slot_of[id], self._tokens[id]
        return self._waiting.pop(id, None) is not None

    def pop_batch(self, task: Task, most: int, fits: Callable[[Task], bool]) -> list[Task]:
        """The first task of a slot with those queued after it, as far as they are wanted and fit."""
        tasks = [task]
        if not (self.is_wanted(task) and fits(task)):
            return tasks
        queue = self._slots[self._slot_of[task.invocation_id]]
        for following in queue[1:most]:
            if not (self.is_wanted(following) and fits(following)):
                break
            tasks.append(following)
            del self._slot_of[following.invocation_id]
        del queue[1 : len(tasks)]
        return tasks

    def mark_started(self, task: Task) -> bool:
        """False when it was released before."""
        if self._waiting.pop(task.invocation_id, None) is None:
            return False
        self._started.add(task.invocation_id)
        return True

    def give_up(self, task: Task) -> bool:
        """True when it was not released before: its outcome must be reported."""
        waited = self._waiting.pop(task.invocation_id, None) is not None
        return waited or task.invocation_id in self._started

    def finish(self, tasks: Iterable[Task]) -> list[Task]:
        """Forgets these tasks; returns the tasks that are first in their slots now."""
        following = []
        for task in tasks:
            id = task.invocation_id
            self._started.discard(id)
            self.intended.discard(id)
            self._waiting.pop(id, None)
            self._tokens.pop(id, None)
            slot = self._slot_of.pop(id, None)
            if slot is None:
                continue
            queue = self._slots[slot]
            queue.remove(task)
            if queue:
                following.append(queue[0])
            else:
                del self._slots[slot]
        return following

    def release_unstarted(self) -> list[Task]:
        """The tasks that have not started; they do not start any more."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
