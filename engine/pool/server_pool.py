"""The sessions of one server: lent, idle, waited for. Bookkeeping only: it opens no connection."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from engine.model.credential import VersionedCredential
from engine.model.server import TargetServer
from engine.pool.budget import Budget, Contact
from muster.core.endpoint import Endpoint
from muster.core.errors import InvalidRequest


class Key(NamedTuple):
    """Sessions with equal keys are interchangeable."""

    database: str
    credential_id: UUID
    row_version: int
    username: str
    endpoint: int  # its number: endpoints are slow to compare

    @classmethod
    def of(cls, database: str, credential: VersionedCredential, endpoint: int) -> "Key":
        id, version = credential.credential_id, credential.row_version
        return cls(database, id, version, credential.username, endpoint)


class Keyed(Protocol):
    """A connection, as far as its pool needs to know it."""

    @property
    def key(self) -> Key: ...


C = TypeVar("C", bound=Keyed)


@dataclass(eq=False)
class Waiter(Generic[C]):
    key: Key
    granted: "asyncio.Future[C | None]"  # None: a session may be opened
    since: float


@dataclass
class ServerPool(Generic[C]):
    server: TargetServer
    budget: Budget = field(default_factory=Budget)
    contact: Contact | None = None
    stale: bool = False  # a session was lost: the server may have been replaced
    watches_client: bool = False  # the server notices a closed connection during a statement
    timeline: str = ""
    crash_epoch: str = ""
    open: int = 0  # lent, idle, being opened, reset or closed
    closing: int = 0
    lent: "dict[Key, int]" = field(default_factory=dict)
    returning: "dict[Key, int]" = field(default_factory=dict)  # being reset
    waiters: "deque[Waiter[C]]" = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None  # when waiters are served again
    sweeper: asyncio.TimerHandle | None = None  # when the oldest idle session expires
    contact_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    admin_slot: asyncio.Lock = field(default_factory=asyncio.Lock)
    _idle: "dict[C, None]" = field(default_factory=dict)  # the oldest first
    _by_key: "dict[Key, list[C]]" = field(default_factory=dict)
    _numbers: dict[Endpoint, int] = field(default_factory=dict)
    _endpoints: "dict[bool, tuple[Endpoint, int]]" = field(default_factory=dict)  # by `direct`

    def update_server(self, server: TargetServer, *, direct: bool) -> tuple[Endpoint, int]:
        """Takes the server's newest definition; returns its endpoint and the endpoint's number."""
        if server is not self.server:
            self.server = server
            self._endpoints.clear()
        numbered = self._endpoints.get(direct)
        if numbered is None:
            endpoint = _endpoint(server, direct=direct)
            number = self._numbers.setdefault(endpoint, len(self._numbers))
            numbered = self._endpoints[direct] = endpoint, number
        return numbered

    def size(self, now: float) -> int:
        return self.budget.size(self.server, self.contact, now)

    def waiting(self) -> list[Waiter[C]]:
        """Without those that are cancelled or expired and not removed yet."""
        return [waiter for waiter in self.waiters if not waiter.granted.done()]

    def set_timer(self, delay: float, serve: "Callable[[ServerPool[C]], None]") -> None:
        """Unless a timer is set that ends earlier."""
        loop = asyncio.get_running_loop()
        if self.timer and self.timer.when() > loop.time() + delay:
            self.timer.cancel()
            self.timer = None
        if not self.timer:
            self.timer = loop.call_later(delay, serve, self)

    def grant(self, waiter: Waiter[C], session: C | None) -> None:
        self.waiters.remove(waiter)
        waiter.granted.set_result(session)

    def take(self, key: Key) -> C | None:
        """The session that was used last, so that the others can expire."""
        idle = self._by_key.get(key)
        return self._removed(idle[-1]) if idle else None

    def oldest(self) -> C | None:
        return next(iter(self._idle), None)

    def take_oldest(self) -> C | None:
        session = self.oldest()
        return self._removed(session) if session else None

    def return_idle(self, session: C) -> None:
        self._idle[session] = None
        self._by_key.setdefault(session.key, []).append(session)

    def drop(self, session: C) -> bool:
        """True if it was idle."""
        return session in self._idle and bool(self._removed(session))

    def _removed(self, session: C) -> C:
        del self._idle[session]
        others = self._by_key[session.key]
        others.remove(session)
        if not others:
            del self._by_key[session.key]
        return session


def increment(counts: dict[Key, int], key: Key) -> None:
    counts[key] = counts.get(key, 0) + 1


def decrement(counts: dict[Key, int], key: Key) -> None:
    if counts[key] > 1:
        counts[key] -= 1
    else:
        del counts[key]


def _endpoint(server: TargetServer, *, direct: bool) -> Endpoint:
    endpoint = server.endpoint
    if not direct:
        return endpoint
    if endpoint.pooling == "transaction" and not endpoint.direct_host:
        raise InvalidRequest(
            f"The server {server.name} is behind a pooler in transaction mode; "
            "a script that has no transaction, or changes its session beyond it (SET without LOCAL, temporary tables, "
            "advisory locks), needs its directHost.",
            code="TransactionModeNotPossible",
        )
    return endpoint.direct()
