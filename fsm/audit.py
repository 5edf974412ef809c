"""Audit events after their commit: chained by hash in batches, and removed when retention allows it.

Both are functions of the metadata database that run with the rights of the tables' owner: the role
of this process can't change an event or its place.
"""

import asyncio

from fsm.context import Services
from muster.core import telemetry
from muster.core.db import Database
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("fsm.sql", "audit.sql")
log = telemetry.get(__name__)

BATCH = 1000


async def run(services: Services, stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            await seal(services.db)
            if removed := await prune(services.db):
                log.info("audit events removed by retention", events=removed)
        except Fault as error:
            log.warning("audit events can't be chained now", why=error.context or error.message)
        await services.clock.sleep_or(stop, services.settings.sweep)


async def seal(db: Database) -> int:
    """How many events got their place; a second process finds nothing left to do."""
    sealed = 0
    while await db.fetchval(Q.has_unsealed):
        sealed += await db.fetchval(Q.seal, BATCH)
    return sealed


async def prune(db: Database) -> int:
    removed = 0
    while await db.fetchval(Q.has_expired) and (batch := await db.fetchval(Q.prune, BATCH)):
        removed += batch
    return removed
