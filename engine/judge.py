"""Says what became of an attempt whose host is lost: its session is ended first, then the target is asked."""

import asyncio
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import asyncpg

from engine.aftermath import AUTOCOMMIT, status_of
from engine.prologue import application_name
from engine.session import LOST
from engine.way import Way
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.refusals import CONFUSED
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
    way: Way,
    database: str | None,
    *,
    backend_pid: int | None,
    old_invocation: UUID,
    xact_id: str | None,
    started: datetime | None,
) -> Verdict:
    """A Fault when the target can't be asked now, or the session does not end."""
    try:
        async with asyncio.timeout(LIMIT), way.session(database, APPLICATION) as connection:
            await _end(connection, way.pid(backend_pid), application_name(old_invocation), started)
            if xact_id is None:
                # It is recorded before COMMIT is sent, or what commits by itself.
                return Verdict.ABORTED
            if xact_id == AUTOCOMMIT:
                return Verdict.UNKNOWN
            return Verdict(await status_of(connection, xact_id))
    except (asyncpg.PostgresError, TimeoutError, *LOST, *CONFUSED) as error:
        message = f"The server {way.server.name} did not answer what became of an attempt."
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
