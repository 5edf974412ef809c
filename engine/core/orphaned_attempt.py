"""Says what became of an attempt whose host is lost: its session is ended first, then the target is asked."""

import asyncio
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import asyncpg

from engine.access.commit_status import AUTOCOMMIT, status_of
from engine.access.errors import CONNECTION_LOST
from engine.access.server_connection import ServerConnection
from engine.model.task import application_name
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

APPLICATION = "muster-judge"
LIMIT = 60.0  # seconds in all
GONE_LIMIT = 30.0  # seconds for a session to end
LOOK = 0.1  # seconds


class OrphanOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"  # nothing of it stays
    UNKNOWN = "unknown"


async def resolve_orphan(
    server_connection: ServerConnection,
    database: str | None,
    *,
    backend_pid: int | None,
    old_invocation: UUID,
    xact_id: str | None,
    started: datetime | None,
) -> OrphanOutcome:
    """A Fault when the target can't be asked now, or the session does not end."""
    try:
        async with (
            asyncio.timeout(LIMIT),
            server_connection.session(database, APPLICATION) as connection,
        ):
            await _end(
                connection,
                server_connection.pid(backend_pid),
                application_name(old_invocation),
                started,
            )
            if xact_id is None:
                # It is recorded before COMMIT is sent, or what commits by itself.
                return OrphanOutcome.ABORTED
            if xact_id == AUTOCOMMIT:
                return OrphanOutcome.UNKNOWN
            return OrphanOutcome(await status_of(connection, xact_id))
    except (asyncpg.PostgresError, TimeoutError, *CONNECTION_LOST, *CONFUSED) as error:
        message = (
            f"The server {server_connection.server.name} did not answer what became of an attempt."
        )
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
