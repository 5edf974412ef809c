"""Reminders in the order of their time; what nobody needs any more is not kept until then."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

LEAST = 10_000  # fewer are not worth tidying


class Timers(Generic[T]):
    def __init__(self, needed: Callable[[T], bool]) -> None:
        self._needed = needed
        self._heap: list[tuple[float, int, T]] = []
        self._number = count()
        self._most = LEAST  # before they are looked through

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def add(self, at: float, what: T) -> None:
        if len(self._heap) >= self._most:
            self.tidy()
        heapq.heappush(self._heap, (at, next(self._number), what))

    def due(self, now: float) -> Iterator[tuple[float, T]]:
        """Each is told once."""
        while self._heap and self._heap[0][0] <= now:
            at, _, what = heapq.heappop(self._heap)
            yield at, what

    def tidy(self, expected: int = 0) -> None:
        """Looks at each, unless there are hardly more than expected; by itself when they have doubled."""
        if len(self._heap) > LEAST + expected:
            self._heap = [timer for timer in self._heap if self._needed(timer[2])]
            heapq.heapify(self._heap)
        self._most = max(LEAST, 2 * len(self._heap))
