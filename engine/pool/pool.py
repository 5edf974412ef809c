"""Lends sessions at targets: within each server's budget and rate, first come first served, and clean.

    session = await sessions.lend(server, "shop", who, identity, direct=False, deadline=…)
    try: …
    finally: sessions.give_back(session)      # at once; DISCARD ALL happens behind

Everything that is open counts, from the first packet to the last. A session is lent again only to the same
credential and database, after DISCARD ALL succeeded. `deadline` is of the clock's monotonic time.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from engine.access.credentials import Credentials
from engine.access.errors import CONNECTION_LOST
from engine.model.task import TargetServer, VersionedCredential
from engine.pgwire.connection import CLEAN, CLEAN_LIMIT
from engine.pool.budget import Contact
from engine.pool.dialer import Dialer, Login
from engine.pool.pooled_connection import PooledConnection
from engine.pool.server_pool import Key, ServerPool, Waiter
from muster.core import connect
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.connect_errors import NoRoom
from muster.core.endpoint import Endpoint
from muster.core.errors import Unavailable

IDLE = 30.0  # seconds
SOON = 0.05  # seconds that another may keep a session until we open one more like it
LEAST_PAUSE = 0.001  # seconds: what is shorter is no timer
STOPPING = "This host is stopping."

T = TypeVar("T")


class Full(Unavailable):
    """No session now, and nothing was sent: the target waits without losing an attempt."""

    def __init__(self, message: str, why: str = "ServerFull", said: str = "") -> None:
        super().__init__(message, code="ServerFull")
        self.why = why  # a wait_reason
        self.said = said  # by the server, if it was asked


class ConnectionPool:
    def __init__(
        self,
        connector: Connector,
        credentials: Credentials,
        clock: Clock,
        on_contact: Callable[[Contact], None],
    ) -> None:
        self._dialing = Dialer(connector, credentials, clock)
        self._clock = clock
        self._on_contact = on_contact
        self._desks: dict[str, ServerPool] = {}
        self._lent: set[PooledConnection] = set()
        self._behind: set[asyncio.Future[Any]] = set()
        self._opening: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def lend(
        self,
        server: TargetServer,
        database: str,
        who: VersionedCredential,
        identity: UUID,
        *,
        direct: bool,
        deadline: float,
    ) -> PooledConnection:
        """Full while there is no room until the deadline; else a Fault as muster.core.connect tells."""
        asked = self._clock.monotonic()
        desk, endpoint, key = self._found(server, database, who, direct=direct)
        session = self._at_once(desk, key)
        if session is None:
            session = await self._wait(desk, key, deadline)
        granted = self._clock.monotonic()
        connecting = 0.0
        if session is None:
            login = Login(server, endpoint, database, who, identity)
            session = await self._open(desk, key, login, deadline)
            connecting = self._clock.monotonic() - granted
        return self._lend(session, granted - asked, connecting)

    def lend_idle(
        self, server: TargetServer, database: str, who: VersionedCredential, *, direct: bool
    ) -> PooledConnection | None:
        """One that is open and of no use to anybody else."""
        desk, _, key = self._found(server, database, who, direct=direct)
        session = self._at_once(desk, key)
        return None if session is None else self._lend(session, 0.0, 0.0)

    def lay_back(self, session: PooledConnection) -> None:
        """Nothing was said in it."""
        since = session.idle_since
        self._lent.discard(session)
        session.desk.take_back(session.key)
        self._rest(session)
        session.idle_since = since

    def _found(
        self, server: TargetServer, database: str, who: VersionedCredential, *, direct: bool
    ) -> tuple[ServerPool, Endpoint, Key]:
        desk = self._desks.get(server.server_id)
        if desk is None:
            desk = self._desks[server.server_id] = ServerPool(server)
        endpoint, way = desk.see(server, direct=direct)
        return desk, endpoint, Key(database, who.credential_id, who.row_version, who.username, way)

    def _lend(
        self, session: PooledConnection, waited: float, connecting: float
    ) -> PooledConnection:
        session.waited, session.connecting, session.cleaned = waited, connecting, None
        self._lent.add(session)
        session.desk.lend(session.key)
        return session

    def give_back(self, session: PooledConnection) -> None:
        self._lent.discard(session)
        session.desk.take_back(session.key)
        session.ear.reset()
        if session.spoiled or session.lost or self._closed:
            self._close_behind(session)
        else:
            returning = session.desk.returning
            returning[session.key] = returning.get(session.key, 0) + 1
            if session.cleaned is None:
                self._do_behind(self._reset(session))
            else:
                self._wait_until_clean(session, session.cleaned)

    async def close(self) -> None:
        """Nothing of ours stays open, be it lent or not."""
        self._closed = True
        for desk in self._desks.values():
            for waiter in desk.waiters:
                if not waiter.granted.done():
                    waiter.granted.set_exception(Full(STOPPING, "NoHost"))
            for timer in (desk.timer, desk.sweeper):
                if timer:
                    timer.cancel()
            while session := desk.take_oldest():
                self._close_behind(session)
        for session in self._lent:
            session.abandon()
        while work := self._behind | self._opening:
            await asyncio.wait(work)

    def why(self, server_id: str) -> str:
        """What who waits for that server waits for: a wait_reason."""
        desk = self._desks.get(server_id)
        full = desk and desk.waiters and desk.open >= desk.size(self._clock.monotonic())
        return "ServerConnections" if full else "Connecting"

    def _at_once(self, desk: ServerPool, key: Key) -> PooledConnection | None:
        """An idle one, if nobody who came before could use its place."""
        if desk.waiters and desk.open >= desk.size(self._clock.monotonic()):
            return None
        return self._taken(desk, key)

    def _taken(self, desk: ServerPool, key: Key) -> PooledConnection | None:
        while session := desk.take(key):
            if not session.lost:
                return session
            self._close_behind(session)
        return None

    async def _wait(self, desk: ServerPool, key: Key, deadline: float) -> PooledConnection | None:
        """None: one may be opened, and is counted already."""
        if self._closed:
            raise Full(STOPPING, "NoHost")
        loop = asyncio.get_running_loop()
        waiter = Waiter(key, loop.create_future(), self._clock.monotonic())
        desk.waiters.append(waiter)
        left = max(0.0, deadline - self._clock.monotonic())
        timer = loop.call_later(left, self._too_late, desk, waiter)
        self._serve(desk)
        try:
            return await waiter.granted
        except BaseException:
            self._leave(desk, waiter)
            raise
        finally:
            timer.cancel()

    def _too_late(self, desk: ServerPool, waiter: Waiter) -> None:
        if not waiter.granted.done():
            message = f"No session at {desk.server.name} became free in time."
            waiter.granted.set_exception(Full(message, self.why(desk.server.server_id)))

    def _leave(self, desk: ServerPool, waiter: Waiter) -> None:
        """Gives up its place, or what it was granted and could not take."""
        granted = waiter.granted
        if waiter in desk.waiters:
            desk.waiters.remove(waiter)
        if not granted.cancelled() and not granted.exception():
            session = granted.result()
            if session:
                self._rest(session)
            else:
                desk.open -= 1
        self._serve(desk)

    def _serve(self, desk: ServerPool) -> None:
        """In their order: an idle session, or leave to open one, or the oldest idle one is closed."""
        now = self._clock.monotonic()
        size = desk.size(now)
        freed = desk.closing  # places that the first of those who find no room may count on
        returning = dict(desk.returning)
        pause: float | None = None
        for waiter in desk.waiting():
            if session := self._taken(desk, waiter.key):
                self._grant(desk, waiter, session)
            elif returning.get(waiter.key):
                returning[waiter.key] -= 1  # sooner than a new one
            elif waiter.key in desk.lent and (left := waiter.since + SOON - now) > 0:
                pause = min(pause or left, left)  # it may come back sooner
            elif desk.open < size:
                if rest := desk.budget.opens_in(desk.server, now):
                    pause = min(pause or rest, rest)
                else:
                    desk.open += 1
                    desk.budget.opened(now)
                    self._grant(desk, waiter, None)
            elif freed:
                freed -= 1
            elif oldest := desk.take_oldest():
                self._close_behind(oldest)
            else:
                pause = pause or desk.budget.grows_in(now)
                break
        self._shrink(desk, size)
        if pause:
            self._serve_later(desk, max(pause, LEAST_PAUSE))

    def _shrink(self, desk: ServerPool, size: int) -> None:
        while desk.open - desk.closing > size and (oldest := desk.take_oldest()):
            self._close_behind(oldest)

    def _serve_later(self, desk: ServerPool, pause: float) -> None:
        loop = asyncio.get_running_loop()
        if desk.timer and desk.timer.when() > loop.time() + pause:
            desk.timer.cancel()
            desk.timer = None
        if not desk.timer:
            desk.timer = loop.call_later(pause, self._serve_anew, desk)

    def _serve_anew(self, desk: ServerPool) -> None:
        desk.timer = None
        if not self._closed:
            self._serve(desk)

    def _grant(self, desk: ServerPool, waiter: Waiter, session: PooledConnection | None) -> None:
        desk.waiters.remove(waiter)
        waiter.granted.set_result(session)

    async def _open(
        self, desk: ServerPool, key: Key, login: Login, deadline: float
    ) -> PooledConnection:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening.add(opened)
        try:
            session = await self._dialing.open(
                desk, key, login, deadline, met=self._met, spawn=self._do_behind
            )
            if self._closed:
                session.connection.terminate()
                raise Full(STOPPING, "NoHost")
        except NoRoom as fault:
            if fault.crowded:
                now = self._clock.monotonic()
                desk.budget.shrink(desk.size(now), now)
            self._free(desk)
            why = "ServerFull" if fault.crowded else "ServerStarting"
            raise Full(fault.message, why, fault.detail or "") from None
        except BaseException:
            self._free(desk)
            raise
        finally:
            self._opening.discard(opened)
            opened.set_result(None)
        session.connection.add_termination_listener(lambda _: self._ended(session))
        return session

    def _met(self, desk: ServerPool, contact: Contact) -> None:
        self._on_contact(contact)
        self._serve(desk)

    def _wait_until_clean(self, session: PooledConnection, cleaned: "asyncio.Future[bool]") -> None:
        """As `_reset`, which it said already."""

        def over(_: object) -> None:
            self._behind.discard(cleaned)
            session.spoiled = session.spoiled or not cleaned.result()
            self._returned(session)

        self._behind.add(cleaned)
        cleaned.add_done_callback(over)

    async def _reset(self, session: PooledConnection) -> None:
        clean = False
        try:
            if session.in_transaction:
                await session.say("rollback", limit=CLEAN_LIMIT)
            if not session.pooled:
                await session.say(CLEAN, limit=CLEAN_LIMIT)
            clean = True
        except (*CONNECTION_LOST, asyncpg.PostgresError, TimeoutError):
            pass
        finally:
            session.spoiled = session.spoiled or not clean
            self._returned(session)

    def _returned(self, session: PooledConnection) -> None:
        desk, key = session.desk, session.key
        if desk.returning[key] > 1:
            desk.returning[key] -= 1
        else:
            del desk.returning[key]
        self._rest(session)

    def _rest(self, session: PooledConnection) -> None:
        if session.spoiled or session.lost or self._closed:
            self._close_behind(session)
            return
        desk = session.desk
        desk.lay(session)
        session.idle_since = session.loop.time()
        if not desk.sweeper:
            desk.sweeper = session.loop.call_later(IDLE, self._sweep, desk)
        if desk.waiters or desk.open > desk.size(self._clock.monotonic()):
            self._serve(desk)

    def _sweep(self, desk: ServerPool) -> None:
        """Closes what nobody used for a while."""
        desk.sweeper = None
        loop = asyncio.get_running_loop()
        while oldest := desk.oldest():
            left = oldest.idle_since + IDLE - loop.time()
            if left > 0:
                desk.sweeper = loop.call_later(left, self._sweep, desk)
                return
            desk.drop(oldest)
            self._close_behind(oldest)

    def _ended(self, session: PooledConnection) -> None:
        """The connection is gone, by us or by them: what is known of the server may be old."""
        session.desk.stale = session.desk.stale or not session.spoiled
        session.spoiled = True
        if session.desk.drop(session):
            self._close_behind(session)

    def _close_behind(self, session: PooledConnection) -> None:
        session.desk.closing += 1
        self._do_behind(self._close(session))

    async def _close(self, session: PooledConnection) -> None:
        session.spoiled = True
        try:
            await connect.close(session.connection)
        finally:
            session.desk.closing -= 1
            self._free(session.desk)

    def _free(self, desk: ServerPool) -> None:
        desk.open -= 1
        if not self._closed:
            self._serve(desk)

    def _do_behind(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return task
