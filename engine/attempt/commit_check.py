"""Asks for the commit status of an attempt's transaction when its connection was lost at COMMIT."""

import asyncio

from engine.access.commit_status import LOOK, Status, status_of
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault, Unavailable


async def commit_status(session: PooledConnection, xact: str, until: float) -> Status:
    """Asks by new connections until it is known; `until` is of the loop's time."""
    try:
        async with asyncio.timeout_at(until):
            while True:
                try:
                    async with session.beside() as other:
                        return await status_of(other, xact)
                except Unavailable:
                    await asyncio.sleep(LOOK)
    except (TimeoutError, Fault):
        return "unknown"
