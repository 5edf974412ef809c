"""Lends sessions at targets, within each server's budget and rate, in the order of the requests.

    session = await pool.lend(server, "shop", credential, identity, direct=False, deadline=…)
    try: …
    finally: pool.give_back(session)      # returns at once; DISCARD ALL runs in the background

Every open connection counts, from the first packet to the last. A session is lent again only for the same
credential and database, after DISCARD ALL succeeded. `deadline` is of the clock's monotonic time.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar
from uuid import UUID

from engine.access.credentials import Credentials
from engine.model.credential import VersionedCredential
from engine.model.server import TargetServer
from engine.pool.budget import Contact
from engine.pool.dialer import Dialer, Login
from engine.pool.errors import Full
from engine.pool.pooled_connection import PooledConnection, TargetPool
from engine.pool.server_pool import Key, ServerPool, Waiter, decrement, increment
from muster.core import connect
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.connect_errors import NoRoom
from muster.core.endpoint import Endpoint

IDLE_TIMEOUT = 30.0  # seconds
REUSE_WAIT = 0.05  # seconds that a request waits for a lent session with its key
MIN_TIMER = 0.001  # seconds
STOPPING = "This host is stopping."

T = TypeVar("T")


class ConnectionPool:
    def __init__(
        self,
        connector: Connector,
        credentials: Credentials,
        clock: Clock,
        on_contact: Callable[[Contact], None],
    ) -> None:
        self._dialer = Dialer(connector, credentials, clock)
        self._clock = clock
        self._on_contact = on_contact
        self._server_pools: dict[str, TargetPool] = {}
        self._lent: set[PooledConnection] = set()
        self._background: set[asyncio.Future[Any]] = set()
        self._opening: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def lend(
        self,
        server: TargetServer,
        database: str,
        credential: VersionedCredential,
        identity: UUID,
        *,
        direct: bool,
        deadline: float,
    ) -> PooledConnection:
        """Raises Full if no session is available until the deadline; else the Faults of muster.core.connect."""
        requested = self._clock.monotonic()
        pool, endpoint, key = self._locate(server, database, credential, direct=direct)
        session = self._idle_if_fair(pool, key)
        if session is None:
            session = await self._wait(pool, key, deadline)
        granted = self._clock.monotonic()
        connecting = 0.0
        if session is None:
            login = Login(server, endpoint, database, credential, identity)
            session = await self._open(pool, key, login, deadline)
            connecting = self._clock.monotonic() - granted
        return self._lend(session, granted - requested, connecting)

    def lend_idle(
        self, server: TargetServer, database: str, credential: VersionedCredential, *, direct: bool
    ) -> PooledConnection | None:
        """An idle session that no earlier request waits for, if there is one."""
        pool, _, key = self._locate(server, database, credential, direct=direct)
        session = self._idle_if_fair(pool, key)
        return None if session is None else self._lend(session, 0.0, 0.0)

    def return_unused(self, session: PooledConnection) -> None:
        """Nothing was sent on it, so it needs no reset."""
        since = session.idle_since
        self._lent.discard(session)
        decrement(session.server_pool.lent, session.key)
        self._make_idle(session)
        session.idle_since = since

    def _locate(
        self, server: TargetServer, database: str, credential: VersionedCredential, *, direct: bool
    ) -> tuple[TargetPool, Endpoint, Key]:
        pool = self._server_pools.get(server.server_id)
        if pool is None:
            pool = self._server_pools[server.server_id] = ServerPool(server)
        endpoint, number = pool.update_server(server, direct=direct)
        return pool, endpoint, Key.of(database, credential, number)

    def _lend(
        self, session: PooledConnection, waited: float, connecting: float
    ) -> PooledConnection:
        session.waited, session.connecting, session.reset_result = waited, connecting, None
        self._lent.add(session)
        increment(session.server_pool.lent, session.key)
        return session

    def give_back(self, session: PooledConnection) -> None:
        self._lent.discard(session)
        decrement(session.server_pool.lent, session.key)
        session.result_reader.reset()
        if session.unusable or session.lost or self._closed:
            self._close_soon(session)
        else:
            increment(session.server_pool.returning, session.key)
            if session.reset_result is None:
                self._spawn(self._reset(session))
            else:
                self._await_reset(session, session.reset_result)

    async def close(self) -> None:
        """Closes all sessions, also those that are lent."""
        self._closed = True
        for pool in self._server_pools.values():
            for waiter in pool.waiters:
                if not waiter.granted.done():
                    waiter.granted.set_exception(Full(STOPPING, "NoHost"))
            for timer in (pool.timer, pool.sweeper):
                if timer:
                    timer.cancel()
            while session := pool.take_oldest():
                self._close_soon(session)
        for session in self._lent:
            session.abandon()
        while work := self._background | self._opening:
            await asyncio.wait(work)

    def sessions(self) -> Iterator[tuple[str, int, int]]:
        """For each server its name, how many sessions are open, and how many requests wait for one."""
        for pool in self._server_pools.values():
            yield pool.server.name, pool.open, len(pool.waiters)

    def why(self, server_id: str) -> str:
        """The wait_reason of requests for that server."""
        pool = self._server_pools.get(server_id)
        full = pool and pool.waiters and pool.open >= pool.size(self._clock.monotonic())
        return "ServerConnections" if full else "Connecting"

    def _idle_if_fair(self, pool: TargetPool, key: Key) -> PooledConnection | None:
        """An idle session, unless an earlier request could use its place."""
        if pool.waiters and pool.open >= pool.size(self._clock.monotonic()):
            return None
        return self._take_idle(pool, key)

    def _take_idle(self, pool: TargetPool, key: Key) -> PooledConnection | None:
        while session := pool.take(key):
            if not session.lost:
                return session
            self._close_soon(session)
        return None

    async def _wait(self, pool: TargetPool, key: Key, deadline: float) -> PooledConnection | None:
        """None: the caller may open one; it is counted already."""
        if self._closed:
            raise Full(STOPPING, "NoHost")
        loop = asyncio.get_running_loop()
        waiter: Waiter[PooledConnection] = Waiter(
            key, loop.create_future(), self._clock.monotonic()
        )
        pool.waiters.append(waiter)
        left = max(0.0, deadline - self._clock.monotonic())
        timer = loop.call_later(left, self._expire, pool, waiter)
        self._serve(pool)
        try:
            return await waiter.granted
        except BaseException:
            self._leave(pool, waiter)
            raise
        finally:
            timer.cancel()

    def _expire(self, pool: TargetPool, waiter: Waiter[PooledConnection]) -> None:
        if not waiter.granted.done():
            message = f"No session at {pool.server.name} is free in time."
            waiter.granted.set_exception(Full(message, self.why(pool.server.server_id)))

    def _leave(self, pool: TargetPool, waiter: Waiter[PooledConnection]) -> None:
        """Removes the request, or returns what it was granted and did not take."""
        granted = waiter.granted
        if waiter in pool.waiters:
            pool.waiters.remove(waiter)
        if not granted.cancelled() and not granted.exception():
            session = granted.result()
            if session:
                self._make_idle(session)
            else:
                pool.open -= 1
        self._serve(pool)

    def _serve(self, pool: TargetPool) -> None:
        """In the order of the requests: grants an idle session or permission to open one, or closes an idle one."""
        now = self._clock.monotonic()
        size = pool.size(now)
        freed = pool.closing  # places that become free for the first requests without one
        returning = dict(pool.returning)
        pause: float | None = None
        for waiter in pool.waiting():
            if session := self._take_idle(pool, waiter.key):
                pool.grant(waiter, session)
            elif returning.get(waiter.key):
                returning[waiter.key] -= 1  # it is available sooner than a new one
            elif waiter.key in pool.lent and (left := waiter.since + REUSE_WAIT - now) > 0:
                pause = min(pause or left, left)  # it may be returned sooner
            elif pool.open < size:
                if rest := pool.budget.opens_in(pool.server, now):
                    pause = min(pause or rest, rest)
                else:
                    pool.open += 1
                    pool.budget.opened(now)
                    pool.grant(waiter, None)
            elif freed:
                freed -= 1
            elif oldest := pool.take_oldest():
                self._close_soon(oldest)
            else:
                pause = pause or pool.budget.grows_in(now)
                break
        self._shrink(pool, size)
        if pause:
            pool.set_timer(max(pause, MIN_TIMER), self._serve_again)

    def _shrink(self, pool: TargetPool, size: int) -> None:
        while pool.open - pool.closing > size and (oldest := pool.take_oldest()):
            self._close_soon(oldest)

    def _serve_again(self, pool: TargetPool) -> None:
        pool.timer = None
        if not self._closed:
            self._serve(pool)

    async def _open(
        self, pool: TargetPool, key: Key, login: Login, deadline: float
    ) -> PooledConnection:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening.add(opened)
        try:
            session = await self._dialer.open(
                pool, key, login, deadline, on_contact=self._contacted, spawn=self._spawn
            )
            if self._closed:
                session.connection.terminate()
                raise Full(STOPPING, "NoHost")
        except NoRoom as fault:
            if fault.crowded:
                now = self._clock.monotonic()
                pool.budget.shrink(pool.size(now), now)
            self._free(pool)
            why = "ServerFull" if fault.crowded else "ServerStarting"
            raise Full(fault.message, why, fault.detail or "") from None
        except BaseException:
            self._free(pool)
            raise
        finally:
            self._opening.discard(opened)
            opened.set_result(None)
        session.connection.add_termination_listener(lambda _: self._on_closed(session))
        return session

    def _contacted(self, pool: TargetPool, contact: Contact) -> None:
        self._on_contact(contact)
        self._serve(pool)

    def _await_reset(self, session: PooledConnection, reset_result: "asyncio.Future[bool]") -> None:
        """For a session whose reset was sent already."""

        def finish(_: object) -> None:
            self._background.discard(reset_result)
            session.unusable = session.unusable or not reset_result.result()
            self._returned(session)

        self._background.add(reset_result)
        reset_result.add_done_callback(finish)

    async def _reset(self, session: PooledConnection) -> None:
        try:
            await session.reset()
        finally:
            self._returned(session)

    def _returned(self, session: PooledConnection) -> None:
        decrement(session.server_pool.returning, session.key)
        self._make_idle(session)

    def _make_idle(self, session: PooledConnection) -> None:
        if session.unusable or session.lost or self._closed:
            self._close_soon(session)
            return
        pool = session.server_pool
        pool.return_idle(session)
        session.idle_since = session.loop.time()
        if not pool.sweeper:
            pool.sweeper = session.loop.call_later(IDLE_TIMEOUT, self._sweep, pool)
        if pool.waiters or pool.open > pool.size(self._clock.monotonic()):
            self._serve(pool)

    def _sweep(self, pool: TargetPool) -> None:
        """Closes sessions that have been idle for too long."""
        pool.sweeper = None
        loop = asyncio.get_running_loop()
        while oldest := pool.oldest():
            left = oldest.idle_since + IDLE_TIMEOUT - loop.time()
            if left > 0:
                pool.sweeper = loop.call_later(left, self._sweep, pool)
                return
            pool.drop(oldest)
            self._close_soon(oldest)

    def _on_closed(self, session: PooledConnection) -> None:
        """The connection was closed: the facts about the server may be outdated."""
        session.server_pool.stale = session.server_pool.stale or not session.unusable
        session.unusable = True
        if session.server_pool.drop(session):
            self._close_soon(session)

    def _close_soon(self, session: PooledConnection) -> None:
        session.server_pool.closing += 1
        self._spawn(self._close(session))

    async def _close(self, session: PooledConnection) -> None:
        session.unusable = True
        try:
            await connect.close(session.connection)
        finally:
            session.server_pool.closing -= 1
            self._free(session.server_pool)

    def _free(self, pool: TargetPool) -> None:
        pool.open -= 1
        if not self._closed:
            self._serve(pool)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
