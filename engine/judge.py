"""Says what became of an attempt whose host is lost: its session is ended first, then the target is asked."""

import asyncio
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import asyncpg

from engine.aftermath import AUTOCOMMIT, status_of
from engine.directory import Credential, Server
from engine.session import LOST
from engine.work import named
from muster.core.connect import Connector
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.settings import Secret
from muster.core.sql import Queries

Q = Queries("engine", "attempt.sql")

APPLICATION = "muster-judge"
LIMIT = 60.0  # seconds in all
GONE_LIMIT = 30.0  # seconds for a session to end
LOOK = 0.1  # seconds


class Verdict(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"  # nothing of it stays
    UNKNOWN = "unknown"


async def judge(
    connector: Connector,
    server: Server,
    database: str,
    who: Credential,
    password: Secret,
    *,
    backend_pid: int | None,
    old_invocation: UUID,
    xact_id: str | None,
    started: datetime | None,
    transaction: str,
) -> Verdict:
    """A Fault when the target can't be asked now, or the session does not end."""
    there = {"target_server_name": server.name, "target_database_name": database}
    session = connector.session(
        server.endpoint.direct(),
        user=named(who.username, there),
        password=password,
        application_name=APPLICATION,
        database=database,
    )
    try:
        async with asyncio.timeout(LIMIT), session as connection:
            # What a pooler says its pid is may be anybody's.
            pid = None if server.pooling == "transaction" else backend_pid
            await _end(connection, pid, f"muster {old_invocation.hex}", started)
            if transaction == "none" or xact_id == AUTOCOMMIT:
                return Verdict.UNKNOWN
            if xact_id is None:
                return Verdict.ABORTED  # its id is recorded before COMMIT is sent
            return Verdict(await status_of(connection, xact_id))
    except (asyncpg.PostgresError, TimeoutError, *LOST) as error:
        message = f"The server {server.name} did not answer what became of an attempt."
        raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None


async def _end(
    connection: Connection, pid: int | None, name: str, started: datetime | None
) -> None:
    for _ in range(int(GONE_LIMIT / LOOK)):
        if not await connection.fetch(Q.end_attempt, pid, name, started):
            return
        await asyncio.sleep(LOOK)
    message = "The session of the lost attempt does not end."
    raise Unavailable(message, code="TargetTimeout")
