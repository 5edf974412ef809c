"""The tasks that a host has in hand: which wait, which follow whom, which have begun."""

from collections.abc import Callable, Iterable
from uuid import UUID

from engine.token import CANCELED, Token
from engine.work import Task


class Hand:
    def __init__(self) -> None:
        self._tokens: dict[UUID, Token] = {}
        self._waiting: dict[UUID, Task] = {}  # taken and not begun
        self._followers: dict[UUID, Task] = {}  # of those, by the task in whose place each begins
        self._begun: set[UUID] = set()  # their start was said
        self.intended: set[UUID] = set()  # may have committed, if nobody knows better

    def take(self, task: Task, leader: UUID | None) -> bool:
        """Whether it has to wait for its leader."""
        self._waiting[task.invocation_id] = task
        follows = leader is not None and leader in self._tokens
        self._tokens[task.invocation_id] = Token()
        if leader is not None and follows:
            self._followers[leader] = task
        return follows

    def token(self, task: Task) -> Token:
        return self._tokens[task.invocation_id]

    def cancel(self, invocation: UUID) -> None:
        if invocation in self._tokens:
            self._tokens[invocation].cancel(CANCELED)

    def cancel_all(self, reason: str) -> None:
        for token in self._tokens.values():
            token.cancel(reason)

    def is_wanted(self, task: Task) -> bool:
        """It waits, and nobody wants it to stop."""
        id = task.invocation_id
        return id in self._waiting and not self._tokens[id].reason

    def unfollow(self, leader: UUID, task: Task) -> bool:
        """It does not wait for its leader any longer; whether it did, and goes back."""
        if self._followers.get(leader) is not task:
            return False
        del self._followers[leader]
        del self._tokens[task.invocation_id]
        return self._waiting.pop(task.invocation_id, None) is not None

    def gather(self, task: Task, most: int, goes: Callable[[Task], bool]) -> list[Task]:
        """With those that follow it, as far as they are wanted and may go with it."""
        tasks = [task]
        while len(tasks) < most and self.is_wanted(tasks[-1]) and goes(tasks[-1]):
            follower = self._followers.get(tasks[-1].invocation_id)
            if follower is None or not (self.is_wanted(follower) and goes(follower)):
                break
            tasks.append(self._followers.pop(tasks[-1].invocation_id))
        return tasks

    def begin(self, task: Task) -> bool:
        """False: it was given back meanwhile."""
        if self._waiting.pop(task.invocation_id, None) is None:
            return False
        self._begun.add(task.invocation_id)
        return True

    def give_up(self, task: Task) -> bool:
        """Whether somebody must hear of it, because it was not given back before."""
        waited = self._waiting.pop(task.invocation_id, None) is not None
        return waited or task.invocation_id in self._begun

    def lay_down(self, tasks: Iterable[Task]) -> Task | None:
        """They are over, whoever follows the last of them may begin."""
        follower = None
        for task in tasks:
            id = task.invocation_id
            self._begun.discard(id)
            self.intended.discard(id)
            self._waiting.pop(id, None)
            self._tokens.pop(id, None)
            follower = self._followers.pop(id, None)
        return follower

    def drop(self) -> list[Task]:
        """Those that have not begun, and do not any more."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
