"""Re-wraps secrets under the current envelope key, in batches, without opening them."""

import asyncio

from fsm.context import Services
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("fsm.sql", "rekey.sql")
log = telemetry.get(__name__)

BATCH = 100
SEALED = "v1."  # other values, such as digests, are left alone


async def run(services: Services, stop: asyncio.Event) -> None:
    """Once per process, since keys change only with the settings; until nothing is left to do."""
    while services.settings.keys is not None and not stop.is_set():
        try:
            if await rewrap(services) == 0:
                log.info("all secrets use the current envelope key", under=services.keyring.current)
                return
        except Fault as error:
            log.warning("secrets can't be re-wrapped now", why=error.message)
            await services.clock.sleep_or(stop, services.settings.sweep)


async def rewrap(services: Services) -> int:
    """How many rows had another key; a row that was written meanwhile is met again."""
    keyring = services.keyring
    rows = await services.db.fetch(Q.sealed_otherwise, f"{SEALED}{keyring.current}.", BATCH)
    for row in rows:
        fresh = {
            name: keyring.rewrap(text, f"{row['uid']}/{name}") if text.startswith(SEALED) else text
            for name, text in row["sealed"].items()
        }
        await services.db.execute(Q.set_sealed, row["uid"], row["sealed"], fresh)
    if rows:
        log.info("secrets re-wrapped", rows=len(rows), under=keyring.current)
    return len(rows)
