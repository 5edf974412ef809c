"""Deletes spool files whose rows will not be written: their step has ended, or the target succeeded elsewhere."""

import asyncio
from datetime import timedelta

from engine.attempt.row_spool import SpoolFolder
from engine.db.control_connection import ControlConnection
from engine.process.exit_codes import FINAL
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.sql import Queries

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "executions.sql")

PAUSE = timedelta(minutes=1)


class SpoolCleaner:
    def __init__(self, folder: SpoolFolder, connection: ControlConnection, clock: Clock) -> None:
        self._folder = folder
        self._connection = connection
        self._clock = clock

    async def run(self) -> None:
        """Until it is cancelled; at once when the host starts."""
        while True:
            try:
                await self.clean()
            except FINAL:
                raise
            except (Fault, OSError) as error:
                log.info("can't clean the spool", why=str(error))
            await self._clock.sleep(PAUSE)

    async def clean(self) -> None:
        entries = await asyncio.to_thread(self._folder.entries)
        if not entries:
            return
        keys = [(each.day, each.run, each.step_id, each.ordinal) for each in entries]
        columns = [list(column) for column in zip(*keys, strict=True)]
        needed = await self._connection.value(Q.needed_rows, *columns)
        for entry, is_needed in zip(entries, needed, strict=True):
            if not is_needed:
                entry.path.unlink(missing_ok=True)
