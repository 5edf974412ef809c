"""The number of sessions at a server and the rate of new ones; pure arithmetic."""

from collections import deque
from dataclasses import dataclass

from engine.model.server import TargetServer
from muster.core import session_budget

CONNECTION_RATE = 5.0  # new connections per second
GROWTH_INTERVAL = 10.0  # seconds until a shrunken budget grows by one


@dataclass(frozen=True)
class Contact:
    """Facts about a server from its first contact."""

    server_id: str
    server_version: int
    max_connections: int
    budget: int


def observed(max_connections: int, reserved: int, others: int) -> int:
    return session_budget.sessions(max_connections - reserved - others)


class Budget:
    def __init__(self) -> None:
        self._cap: int | None = (
            None  # less than the full size after the server refused a connection
        )
        self._shrunk_at = 0.0
        self._opened: deque[float] = deque()

    def size(self, server: TargetServer, contact: Contact | None, now: float) -> int:
        budget = server.max_connections or (contact.budget if contact else server.budget)
        full = session_budget.working(budget) if budget else 1  # the first contact
        if self._cap is None:
            return full
        grown = self._cap + int((now - self._shrunk_at) / GROWTH_INTERVAL)
        if grown >= full:
            self._cap = None
        return min(grown, full)

    def shrink(self, size: int, now: float) -> None:
        self._cap, self._shrunk_at = max(1, size // 2), now

    def grows_in(self, now: float) -> float | None:
        """Seconds; None when the budget has its full size."""
        if self._cap is None:
            return None
        return GROWTH_INTERVAL - (now - self._shrunk_at) % GROWTH_INTERVAL

    def opens_in(self, server: TargetServer, now: float) -> float:
        """Seconds until another connection may be opened."""
        rate = server.connections_per_second or CONNECTION_RATE
        burst = max(1, int(rate))
        while len(self._opened) > burst:
            self._opened.popleft()
        if len(self._opened) < burst:
            return 0.0
        return max(0.0, self._opened[0] + burst / rate - now)

    def opened(self, now: float) -> None:
        self._opened.append(now)
