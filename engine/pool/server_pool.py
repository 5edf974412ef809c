"""One server's sessions: who has one, which are idle, who waits; it decides and connects to nothing."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from engine.model.task import TargetServer
from engine.pool.budget import Budget, Contact
from muster.core.endpoint import Endpoint
from muster.core.errors import InvalidRequest

if TYPE_CHECKING:
    from engine.pool.pooled_connection import PooledConnection


class Key(NamedTuple):
    """Sessions with the same one are interchangeable."""

    database: str
    credential_id: UUID
    row_version: int
    username: str
    way: int  # the number of the endpoint, which would be slow to compare


@dataclass(eq=False)
class Waiter:
    key: Key
    granted: "asyncio.Future[PooledConnection | None]"  # None: a session may be opened
    since: float


@dataclass
class ServerPool:
    server: TargetServer
    budget: Budget = field(default_factory=Budget)
    contact: Contact | None = None
    stale: bool = False  # a session was lost: the server may be another one now
    watches_client: bool = False  # the server notices a client that is gone
    timeline: str = ""
    era: str = ""
    open: int = 0  # lent, idle, being opened, reset or closed
    closing: int = 0
    lent: "dict[Key, int]" = field(default_factory=dict)
    returning: "dict[Key, int]" = field(default_factory=dict)  # being reset
    waiters: "deque[Waiter]" = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None  # when to look again whether somebody can be served
    sweeper: asyncio.TimerHandle | None = (
        None  # when the oldest idle session has been so for too long
    )
    meeting: asyncio.Lock = field(default_factory=asyncio.Lock)
    spare: asyncio.Lock = field(default_factory=asyncio.Lock)
    _idle: "dict[PooledConnection, None]" = field(default_factory=dict)  # the oldest first
    _by_key: "dict[Key, list[PooledConnection]]" = field(default_factory=dict)
    _ways: dict[Endpoint, int] = field(default_factory=dict)
    _seen: "dict[bool, tuple[Endpoint, int]]" = field(
        default_factory=dict
    )  # of the server, by direct

    def see(self, server: TargetServer, *, direct: bool) -> tuple[Endpoint, int]:
        """The way to it, as it is now."""
        if server is not self.server:
            self.server = server
            self._seen.clear()
        found = self._seen.get(direct)
        if found is None:
            endpoint = _endpoint(server, direct=direct)
            way = self._ways.setdefault(endpoint, len(self._ways))
            found = self._seen[direct] = endpoint, way
        return found

    def size(self, now: float) -> int:
        return self.budget.size(self.server, self.contact, now)

    def waiting(self) -> "list[Waiter]":
        """Without those who gave up or were too late, and are about to leave."""
        return [waiter for waiter in self.waiters if not waiter.granted.done()]

    def lend(self, key: Key) -> None:
        self.lent[key] = self.lent.get(key, 0) + 1

    def take_back(self, key: Key) -> None:
        if self.lent[key] > 1:
            self.lent[key] -= 1
        else:
            del self.lent[key]

    def take(self, key: Key) -> "PooledConnection | None":
        """The one that was used last, so that the others may grow old."""
        known = self._by_key.get(key)
        return self._without(known[-1]) if known else None

    def oldest(self) -> "PooledConnection | None":
        return next(iter(self._idle), None)

    def take_oldest(self) -> "PooledConnection | None":
        """Taken out."""
        session = self.oldest()
        return self._without(session) if session else None

    def lay(self, session: "PooledConnection") -> None:
        self._idle[session] = None
        self._by_key.setdefault(session.key, []).append(session)

    def drop(self, session: "PooledConnection") -> bool:
        """Whether it was idle."""
        return session in self._idle and bool(self._without(session))

    def _without(self, session: "PooledConnection") -> "PooledConnection":
        del self._idle[session]
        alike = self._by_key[session.key]
        alike.remove(session)
        if not alike:
            del self._by_key[session.key]
        return session


def _endpoint(server: TargetServer, *, direct: bool) -> Endpoint:
    endpoint = server.endpoint
    if not direct:
        return endpoint
    if endpoint.pooling == "transaction" and not endpoint.direct_host:
        raise InvalidRequest(
            f"The server {server.name} is reached through a pooler that lends it by transactions; "
            "a script that has no transaction, or changes its session beyond it (SET without LOCAL, temporary tables, "
            "advisory locks), needs its directHost.",
            code="TransactionModeNotPossible",
        )
    return endpoint.direct()
