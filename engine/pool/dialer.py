"""Opens sessions with a credential, and queries a server's facts at the first contact."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from engine.access.credentials import Credentials
from engine.access.errors import CONNECTION_LOST
from engine.model.credential import VersionedCredential
from engine.model.server import TargetServer
from engine.pgwire.result_set import rows_of
from engine.pgwire.results import ResultReader
from engine.pool.budget import Contact, observed
from engine.pool.pooled_connection import PooledConnection, Spawn, TargetPool
from engine.pool.server_pool import Key
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
CONTACT_TIMEOUT = 10.0  # seconds
MAX_CONNECTIONS = 262_143  # PostgreSQL's own limit
MAX_FACT_LENGTH = 64  # characters of a timeline or a crash epoch
WATCHES_CLIENT = 140_000  # the first version with client_connection_check_interval

Query = Callable[[str], Awaitable[list[Any]]]


@dataclass(frozen=True)
class Login:
    server: TargetServer
    endpoint: Endpoint
    database: str
    credential: VersionedCredential
    identity: UUID  # of the control database: sealed secrets are bound to it

    def direct(self) -> "Login":
        return replace(self, endpoint=self.endpoint.direct())


class Dialer:
    def __init__(self, connector: Connector, credentials: Credentials, clock: Clock) -> None:
        self._connector = connector
        self._credentials = credentials
        self._clock = clock

    async def connect(
        self, login: Login, deadline: float, reader: ResultReader | None = None
    ) -> Connection:
        return await self._credentials.log_in(
            login.credential,
            login.server,
            login.identity,
            lambda password: self._dial(login, password, deadline, reader),
        )

    async def open(
        self,
        server_pool: TargetPool,
        key: Key,
        login: Login,
        deadline: float,
        *,
        on_contact: Callable[[TargetPool, Contact], None],
        spawn: Spawn,
    ) -> PooledConnection:
        """`on_contact` is called with the facts about the server if they were not known."""
        reader = ResultReader()
        connection = await self.connect(login, deadline, reader)
        try:
            pooling = login.endpoint.pooling
            session = PooledConnection(
                server_pool, key, connection, reader, pooled=pooling == "transaction"
            )
            session.preset = pooling == "none"
            session.spawn = spawn
            session.open_another = lambda: self._connect_directly(login)
            session.take_over()
            async with asyncio.timeout(self._contact_timeout(deadline)), server_pool.contact_lock:
                if server_pool.contact is None or server_pool.stale:
                    server_pool.contact = await self._contact(session)
                    server_pool.stale = False
                    on_contact(server_pool, server_pool.contact)
            if session.lost:
                raise ConnectionError("the server closed the connection at once")
        except TimeoutError:
            connection.terminate()
            message = f"The server {server_pool.server.name} accepted the connection and then did not answer."
            raise Unavailable(message, code="TargetTimeout") from None
        except ConnectionError as error:
            connection.terminate()
            message = f"The server {server_pool.server.name} can't be used."
            raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None
        except BaseException:
            connection.terminate()
            raise
        reader.reset()
        session.copy_server_facts()
        return session

    def _contact_timeout(self, deadline: float) -> float:
        return min(CONTACT_TIMEOUT, max(0.1, deadline - self._clock.monotonic()))

    async def _connect_directly(self, login: Login) -> Connection:
        limit = self._connector.limit.total_seconds()
        return await self.connect(login.direct(), self._clock.monotonic() + limit)

    async def _contact(self, session: PooledConnection) -> Contact:
        async def query(question: str) -> list[Any]:
            return rows_of(await session.query(question), -1, least=1)[0]

        server_pool, version = session.server_pool, session.version
        try:
            maximum, reserved, others = map(int, await query(Q.contact))
            if not all(0 <= each <= MAX_CONNECTIONS for each in (maximum, reserved, others)):
                raise ValueError("no server has so many connections")
            watches = version >= WATCHES_CLIENT and await _optional(query, Q.watch_client)
            server_pool.watches_client = bool(watches)
            server_pool.timeline = await _optional(query, Q.timeline)
            server_pool.crash_epoch = await _optional(query, Q.crash_epoch)
        except (*CONNECTION_LOST, asyncpg.PostgresError, ValueError, TypeError) as error:
            message = f"The server {server_pool.server.name} did not answer the queries of the first contact."
            raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None
        return Contact(
            server_pool.server.server_id, version, maximum, observed(maximum, reserved, others)
        )

    async def _dial(
        self, login: Login, password: Secret, deadline: float, reader: ResultReader | None
    ) -> Connection:
        left = timedelta(seconds=max(0.1, deadline - self._clock.monotonic()))
        endpoint = self._credentials.certify(login.endpoint, login.server, login.identity)
        return await self._connector.open(
            endpoint,
            user=login.credential.username,
            password=password,
            application_name=APPLICATION,
            database=login.database,
            timeout=min(self._connector.limit, left),
            tap=reader,
            proven=True,
            search_path=SCRIPT_PATH if reader else OWN_PATH,
        )


async def _optional(query: Query, text: str) -> str:
    """A fact that not every server provides."""
    try:
        return str((await query(text))[0])[:MAX_FACT_LENGTH]
    except asyncpg.PostgresError:
        return ""
