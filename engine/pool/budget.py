"""How many sessions a server gets from us, and how quickly; arithmetic without a connection."""

from collections import deque
from dataclasses import dataclass

from engine.model.task import TargetServer
from muster.core import session_budget

RATE = 5.0  # new connections per second
GROWS = 10.0  # seconds until a shrunken budget gets one back


@dataclass(frozen=True)
class Contact:
    """What was learned of a server when it was first reached."""

    server_id: str
    server_version: int
    max_connections: int
    budget: int


def observed(max_connections: int, reserved: int, others: int) -> int:
    return session_budget.sessions(max_connections - reserved - others)


class Budget:
    def __init__(self) -> None:
        self._cap: int | None = None  # below the full size since the server was crowded
        self._shrunk_at = 0.0
        self._opened: deque[float] = deque()

    def size(self, server: TargetServer, contact: Contact | None, now: float) -> int:
        known = server.max_connections or (contact.budget if contact else server.budget)
        full = session_budget.working(known) if known else 1  # one goes ahead and asks
        if self._cap is None:
            return full
        grown = self._cap + int((now - self._shrunk_at) / GROWS)
        if grown >= full:
            self._cap = None
        return min(grown, full)

    def shrink(self, size: int, now: float) -> None:
        self._cap, self._shrunk_at = max(1, size // 2), now

    def grows_in(self, now: float) -> float | None:
        """Seconds; None when it has its full size."""
        if self._cap is None:
            return None
        return GROWS - (now - self._shrunk_at) % GROWS

    def opens_in(self, server: TargetServer, now: float) -> float:
        """Seconds until another connection may be opened."""
        rate = server.connections_per_second or RATE
        many = max(1, int(rate))
        while len(self._opened) > many:
            self._opened.popleft()
        if len(self._opened) < many:
            return 0.0
        return max(0.0, self._opened[0] + many / rate - now)

    def opened(self, now: float) -> None:
        self._opened.append(now)
