"""Pauses between attempts: each is twice the one before, up to the longest."""

from datetime import timedelta


class Backoff:
    def __init__(self, first: float, longest: float) -> None:
        """Both in seconds."""
        self._first = first
        self._longest = longest
        self._seconds = first

    @property
    def seconds(self) -> float:
        """The pause that `next` returns."""
        return self._seconds

    def next(self) -> timedelta:
        seconds, self._seconds = self._seconds, min(2 * self._seconds, self._longest)
        return timedelta(seconds=seconds)

    def reset(self) -> None:
        self._seconds = self._first
