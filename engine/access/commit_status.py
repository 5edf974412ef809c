"""Queries whether a transaction was committed, by its id."""

import asyncio
from typing import Literal

import asyncpg

from engine.access.errors import CONNECTION_LOST
from muster.core.db import Connection
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

AUTOCOMMIT = "autocommit"  # instead of an id: the statements commit one by one
Status = Literal["committed", "aborted", "unknown"]
POLL_INTERVAL = 0.3  # seconds


def xact_id(xid: object, timeline: str, crash_epoch: str) -> str:
    """With timeline and crash epoch: after a failover or a crash another transaction may have the same id."""
    return f"{xid}@{timeline}/{crash_epoch}"


async def status_of(connection: Connection, xact: str) -> Status:
    """Waits while the transaction is in progress; the caller sets a time limit."""
    xid, _, context = xact.partition("@")
    timeline, _, crash_epoch = context.partition("/")
    if timeline and timeline != await _optional(connection, Q.timeline):
        return "unknown"
    now = await _optional(connection, Q.crash_epoch)
    crashed = bool(crash_epoch and now and crash_epoch != now)
    try:
        while (status := await connection.fetchval(Q.transaction_status, xid)) == "in progress":  # noqa: ASYNC110 - polls another server
            await asyncio.sleep(POLL_INTERVAL)
    except CONNECTION_LOST:
        raise
    except asyncpg.PostgresError:  # the server has not assigned this id, or has forgotten it
        return "aborted" if crashed else "unknown"
    # After a crash the server assigns ids again that were not in its log: the commit may be another transaction's.
    if status == "committed" and (crashed or not (crash_epoch and now)):
        return "unknown"
    return status if status in {"committed", "aborted"} else "unknown"


async def _optional(connection: Connection, query: str) -> str:
    """A fact that not every server provides."""
    try:
        return str(await connection.fetchval(query))
    except CONNECTION_LOST:
        raise
    except asyncpg.PostgresError:
        return ""
