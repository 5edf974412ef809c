"""Deletes spool files whose rows are no longer needed, as the control database knows it.

An attempt does not delete its own file: it may have been taken from its host, and the next one reads the same file.
"""

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

PAUSE = timedelta(seconds=10)
REPORT_TIME = timedelta(seconds=1)  # until the outcome of an attempt is recorded


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
            await self._clock.sleep_or(self._folder.written, PAUSE)
            if self._folder.written.is_set():
                await self._clock.sleep(REPORT_TIME)
            self._folder.written.clear()

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
