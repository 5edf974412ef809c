"""Measures how long the phases of an attempt take."""

from engine.pool.pooled_connection import PooledConnection


class Stopwatch:
    """Milliseconds by phase; a phase ends when the next one begins."""

    def __init__(self, session: PooledConnection) -> None:
        self.milliseconds = {"waiting": _ms(session.waited), "connecting": _ms(session.connecting)}
        self._time = session.loop.time
        self._phase, self._since = "starting", self._time()

    def begin_phase(self, phase: str) -> None:
        now = self._time()
        self.milliseconds[self._phase] = _ms(now - self._since)
        self._phase, self._since = phase, now


def _ms(seconds: float) -> float:
    return int(seconds * 10_000 + 0.5) / 10
