"""Queries the commit status of an attempt's transaction after its connection was lost at COMMIT."""

import asyncio

from engine.access.commit_status import POLL_INTERVAL, Status, status_of
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault, Unavailable


async def commit_status(session: PooledConnection, xact: str, until: float) -> Status:
    """Queries by new connections until the status is known; `until` is of the loop's time."""
    try:
        async with asyncio.timeout_at(until):
            while True:
                try:
                    async with session.second_connection() as other:
                        return await status_of(other, xact)
                except Unavailable:
                    await asyncio.sleep(POLL_INTERVAL)
    except (TimeoutError, Fault):
        return "unknown"
