"""The tasks that a host has in hand: which wait, which follow whom, which have begun."""

from collections.abc import Callable, Iterable
from uuid import UUID

from engine.attempt.cancel_token import CANCELED, CancelToken
from engine.model.task import Task


class TaskRegistry:
    def __init__(self) -> None:
        self._tokens: dict[UUID, CancelToken] = {}
        self._waiting: dict[UUID, Task] = {}  # taken and not begun
        self._followers: dict[UUID, Task] = {}  # of those, by the task in whose place each begins
        self._leaders: dict[UUID, UUID] = {}  # the other way round
        self._begun: set[UUID] = set()  # their start was said
        self.intended: set[UUID] = set()  # may have committed, if nobody knows better

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def take(self, task: Task, leader: UUID | None) -> bool:
        """Whether it has to wait: for its leader, or for whoever stands behind that already."""
        follows = leader in self._tokens
        self._waiting[task.invocation_id] = task
        self._tokens[task.invocation_id] = CancelToken()
        if leader is None or not follows:
            return False
        while (other := self._followers.get(leader)) is not None:
            leader = other.invocation_id
        self._follow(leader, task)
        return True

    def _follow(self, leader: UUID, task: Task) -> None:
        self._followers[leader] = task
        self._leaders[task.invocation_id] = leader

    def token(self, task: Task) -> CancelToken:
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

    def unfollow(self, task: Task) -> bool:
        """It waits for nobody any longer; whether it did, and goes back. Whoever stands behind it moves up."""
        id = task.invocation_id
        leader = self._leaders.get(id)
        if leader is None:
            return False
        self._released(leader)
        if follower := self._released(id):
            self._follow(leader, follower)
        del self._tokens[id]
        return self._waiting.pop(id, None) is not None

    def gather(self, task: Task, most: int, goes: Callable[[Task], bool]) -> list[Task]:
        """With those that follow it, as far as they are wanted and may go with it."""
        tasks = [task]
        if not (self.is_wanted(task) and goes(task)):
            return tasks
        while len(tasks) < most:
            last = tasks[-1].invocation_id
            follower = self._followers.get(last)
            if follower is None or not (self.is_wanted(follower) and goes(follower)):
                break
            self._released(last)
            tasks.append(follower)
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

    def lay_down(self, tasks: Iterable[Task]) -> list[Task]:
        """They are over, and whoever follows one of them may begin."""
        followers = []
        for task in tasks:
            id = task.invocation_id
            self._begun.discard(id)
            self.intended.discard(id)
            self._waiting.pop(id, None)
            self._tokens.pop(id, None)
            if follower := self._released(id):
                followers.append(follower)
        return followers

    def _released(self, leader: UUID) -> Task | None:
        """Whoever followed it."""
        follower = self._followers.pop(leader, None)
        if follower is not None:
            del self._leaders[follower.invocation_id]
        return follower

    def drop(self) -> list[Task]:
        """Those that have not begun, and do not any more."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
