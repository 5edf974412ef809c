"""Measures how long the phases of an attempt take."""

from engine.pool.pooled_connection import PooledConnection


class Stopwatch:
    """Milliseconds by phase; a phase ends where the next begins."""

    def __init__(self, session: PooledConnection) -> None:
        self.taken = {"waiting": _ms(session.waited), "connecting": _ms(session.connecting)}
        self._time = session.loop.time
        self._phase, self._since = "starting", self._time()

    def turn(self, phase: str) -> None:
        now = self._time()
        self.taken[self._phase] = _ms(now - self._since)
        self._phase, self._since = phase, now


def _ms(seconds: float) -> float:
    return int(seconds * 10_000 + 0.5) / 10
