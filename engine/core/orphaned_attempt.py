"""Resolves an attempt whose host is lost: ends its session, then reads its commit status at the target."""

import asyncio
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import asyncpg

from engine.access import commit_status
from engine.access.commit_status import status_of
from engine.access.errors import CONNECTION_LOST
from engine.access.server_connection import ServerConnection
from engine.model import verification
from engine.model.task import application_name
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

APPLICATION = "muster-judge"
TIMEOUT = 60.0  # seconds in all
SESSION_END_TIMEOUT = 30.0  # seconds
POLL_INTERVAL = 0.1  # seconds


class OrphanOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"  # without any effect
    UNKNOWN = "unknown"


def recorded_outcome(xact_id: str | None) -> OrphanOutcome | None:
    """What the control database knows without the target; None: the transaction's status has to be queried."""
    match xact_id:
        case None:
            # The id is recorded before COMMIT, or a statement in autocommit mode, is sent.
            return OrphanOutcome.ABORTED
        case verification.COMMITTED | verification.VERIFIED:
            return OrphanOutcome.COMMITTED
        case verification.UNKNOWN | commit_status.AUTOCOMMIT:
            return OrphanOutcome.UNKNOWN
        case _:
            return None


async def resolve_orphan(
    server_connection: ServerConnection,
    database: str | None,
    *,
    backend_pid: int | None,
    old_invocation: UUID,
    xact_id: str | None,
    started: datetime | None,
) -> OrphanOutcome:
    """Raises a Fault when the target can't be reached now, or the session does not end."""
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            server_connection.session(database, APPLICATION) as connection,
        ):
            await _end_session(
                connection,
                server_connection.pid(backend_pid),
                application_name(old_invocation),
                started,
            )
            if (outcome := recorded_outcome(xact_id)) is not None:
                return outcome
            assert xact_id is not None
            return OrphanOutcome(await status_of(connection, xact_id))
    except (asyncpg.PostgresError, TimeoutError, *CONNECTION_LOST, *CONFUSED) as error:
        message = f"The server {server_connection.server.name} did not answer whether an attempt committed."
        raise Unavailable(message, code="TargetUnreachable", context=str(error)) from None


async def _end_session(
    connection: Connection, pid: int | None, name: str, started: datetime | None
) -> None:
    for _ in range(int(SESSION_END_TIMEOUT / POLL_INTERVAL)):
        if not await connection.fetch(Q.end_attempt, pid, name, started):
            return
        await asyncio.sleep(POLL_INTERVAL)
    message = "The session of the lost attempt does not end."
    raise Unavailable(message, code="TargetTimeout")
