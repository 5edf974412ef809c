"""Opens sessions with a credential, and asks a server once what it is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from engine.access.credentials import Credentials
from engine.access.errors import CONNECTION_LOST
from engine.model.task import TargetServer, VersionedCredential
from engine.pgwire.results import ResultReader, rows_of
from engine.pool.budget import Contact, observed
from engine.pool.pooled_connection import PooledConnection, Spawn
from engine.pool.server_pool import Key, ServerPool
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.db import Connection
from muster.core.endpoint import Endpoint
from muster.core.errors import Unavailable
from muster.core.session_settings import OWN_PATH, SCRIPT_PATH
from muster.core.settings import Secret
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

APPLICATION = "muster"
MEET_LIMIT = 10.0  # seconds for a server to say what it is
MOST_CONNECTIONS = 262_143  # that PostgreSQL can be set to
LONGEST_ANSWER = 64  # characters of a timeline, or of what else names a server's life
WATCHES_CLIENT = 140_000  # the version that learned it

Ask = Callable[[str], Awaitable[list[Any]]]


@dataclass(frozen=True)
class Login:
    server: TargetServer
    endpoint: Endpoint
    database: str
    who: VersionedCredential
    identity: UUID  # of the control database: sealed secrets are bound to it

    def direct(self) -> "Login":
        return replace(self, endpoint=self.endpoint.direct())


class Dialer:
    def __init__(self, connector: Connector, credentials: Credentials, clock: Clock) -> None:
        self._connector = connector
        self._credentials = credentials
        self._clock = clock

    async def connect(
        self, login: Login, deadline: float, ear: ResultReader | None = None
    ) -> Connection:
        return await self._credentials.log_in(
            login.who,
            login.server,
            login.identity,
            lambda password: self._dial(login, password, deadline, ear),
        )

    async def open(
        self,
        desk: ServerPool,
        key: Key,
        login: Login,
        deadline: float,
        *,
        met: Callable[[ServerPool, Contact], None],
        spawn: Spawn,
    ) -> PooledConnection:
        """`met` hears what the server is, when nobody had asked it yet."""
        ear = ResultReader()
        connection = await self.connect(login, deadline, ear)
        try:
            pooling = login.endpoint.pooling
            session = PooledConnection(desk, key, connection, ear, pooled=pooling == "transaction")
            session.preset = pooling == "none"
            session.spawn = spawn
            session.open_another = lambda: self._soon(login.direct())
            session.take_over()
            async with asyncio.timeout(self._patience(deadline)), desk.meeting:
                if desk.contact is None or desk.stale:
                    desk.contact = await self._meet(session)
                    desk.stale = False
                    met(desk, desk.contact)
            if session.lost:
                raise ConnectionError("it hung up at once")
        except TimeoutError:
            connection.terminate()
            message = f"The server {desk.server.name} accepted us and then did not answer."
            raise Unavailable(message, code="TargetTimeout") from None
        except ConnectionError as error:
            connection.terminate()
            message = f"The server {desk.server.name} can't be spoken to."
            raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None
        except BaseException:
            connection.terminate()
            raise
        ear.reset()
        session.know()
        return session

    def _patience(self, deadline: float) -> float:
        """Seconds for a server to say what it is."""
        return min(MEET_LIMIT, max(0.1, deadline - self._clock.monotonic()))

    async def _soon(self, login: Login) -> Connection:
        limit = self._connector.limit.total_seconds()
        return await self.connect(login, self._clock.monotonic() + limit)

    async def _meet(self, session: PooledConnection) -> Contact:
        async def ask(question: str) -> list[Any]:
            return rows_of(await session.ask(question), -1, least=1)[0]

        desk, number = session.desk, session.version
        try:
            most, reserved, others = map(int, await ask(Q.contact))
            if not all(0 <= each <= MOST_CONNECTIONS for each in (most, reserved, others)):
                raise ValueError("no server has so many connections")
            watches = number >= WATCHES_CLIENT and await _perhaps(ask, Q.watch_client)
            desk.watches_client = bool(watches)
            desk.timeline = await _perhaps(ask, Q.timeline)
            desk.era = await _perhaps(ask, Q.era)
        except (*CONNECTION_LOST, asyncpg.PostgresError, ValueError, TypeError) as error:
            message = f"The server {desk.server.name} did not say what it is."
            raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None
        return Contact(desk.server.server_id, number, most, observed(most, reserved, others))

    async def _dial(
        self, login: Login, password: Secret, deadline: float, ear: ResultReader | None
    ) -> Connection:
        left = timedelta(seconds=max(0.1, deadline - self._clock.monotonic()))
        endpoint = self._credentials.certify(login.endpoint, login.server, login.identity)
        return await self._connector.open(
            endpoint,
            user=login.who.username,
            password=password,
            application_name=APPLICATION,
            database=login.database,
            timeout=min(self._connector.limit, left),
            tap=ear,
            proven=True,
            search_path=SCRIPT_PATH if ear else OWN_PATH,
        )


async def _perhaps(ask: Ask, question: str) -> str:
    """What not every server answers."""
    try:
        return str((await ask(question))[0])[:LONGEST_ANSWER]
    except asyncpg.PostgresError:
        return ""
