"""Finds out afterwards whether a transaction was committed, by the id that it had."""

import asyncio
from typing import Literal

import asyncpg

from engine.access.errors import CONNECTION_LOST
from muster.core.db import Connection
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

AUTOCOMMIT = "autocommit"  # instead of an id: what the script does commits by itself
Status = Literal["committed", "aborted", "unknown"]
LOOK = 0.3  # seconds between two questions


def xact_id(xid: object, timeline: str, era: str) -> str:
    """With the server's life: after a failover or a crash the same id may be another's."""
    return f"{xid}@{timeline}/{era}"


async def status_of(connection: Connection, xact: str) -> Status:
    """Waits while it is in progress; the caller has the limit."""
    xid, _, life = xact.partition("@")
    timeline, _, era = life.partition("/")
    if timeline and timeline != await _perhaps(connection, Q.timeline):
        return "unknown"
    now = await _perhaps(connection, Q.era)
    crashed = bool(era and now and era != now)
    try:
        while (found := await connection.fetchval(Q.transaction_status, xid)) == "in progress":  # noqa: ASYNC110 - another server's state
            await asyncio.sleep(LOOK)
    except CONNECTION_LOST:
        raise
    except asyncpg.PostgresError:  # an id that this server has not given, or not once more
        return "aborted" if crashed else "unknown"
    # A crash forgets ids that were not in the log yet, and gives them away again: a commit may be anybody's.
    if found == "committed" and (crashed or not (era and now)):
        return "unknown"
    return found if found in {"committed", "aborted"} else "unknown"


async def _perhaps(connection: Connection, question: str) -> str:
    """What not every server answers."""
    try:
        return str(await connection.fetchval(question))
    except CONNECTION_LOST:
        raise
    except asyncpg.PostgresError:
        return ""
