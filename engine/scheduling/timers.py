"""Timers in the order of their time. Timers that are no longer needed are removed before they are due."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

MIN_CLEANUP = 10_000  # fewer timers are not worth a pass over all of them


class Timers(Generic[T]):
    def __init__(self, needed: Callable[[T], bool]) -> None:
        self._needed = needed
        self._heap: list[tuple[float, int, T]] = []
        self._number = count()
        self._max_size = MIN_CLEANUP  # before a pass over all of them

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def add(self, at: float, item: T) -> None:
        if len(self._heap) >= self._max_size:
            self.tidy()
        heapq.heappush(self._heap, (at, next(self._number), item))

    def due(self, now: float) -> Iterator[tuple[float, T]]:
        """Removes and yields the timers up to now."""
        while self._heap and self._heap[0][0] <= now:
            at, _, item = heapq.heappop(self._heap)
            yield at, item

    def tidy(self, expected: int = 0) -> None:
        """Removes timers that are not needed, unless there are hardly more than expected.

        `add` calls it when their number has doubled.
        """
        if len(self._heap) > MIN_CLEANUP + expected:
            self._heap = [timer for timer in self._heap if self._needed(timer[2])]
            heapq.heapify(self._heap)
        self._max_size = max(MIN_CLEANUP, 2 * len(self._heap))
