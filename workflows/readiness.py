"""Whether requests can be served: the metadata database accepts a write, and the data directory has disk space."""

import asyncio
import shutil

from muster.core import telemetry
from muster.core.errors import Fault, Unavailable
from muster.core.sql import Queries
from workflows.services import Services

log = telemetry.get(__name__)
Q = Queries("workflows.sql", "readiness.sql")

KEPT = 1.0  # seconds: probes need no authentication, so most of them get the last result
LEAST_FREE = 1024 * 1024  # bytes


class Readiness:
    def __init__(self, services: Services) -> None:
        self._plane = services
        self._lock = asyncio.Lock()
        self._due = float("-inf")
        self._fault: Fault | None = None

    async def check(self) -> None:
        """Raises Unavailable, at most a second late."""
        async with self._lock:
            now = self._plane.clock.monotonic()
            if now >= self._due:
                self._fault = await self._find_fault()
                self._due = now + KEPT
                if self._fault:
                    log.warning("not ready", code=self._fault.code, why=self._fault.message)
        if self._fault:
            raise self._fault

    async def _find_fault(self) -> Fault | None:
        folder = self._plane.settings.data_dir
        try:
            if folder and shutil.disk_usage(folder).free < LEAST_FREE:
                raise Unavailable(f"The disk of {folder} is full.", code="DiskFull", retry_after=10)
            await self._plane.db.execute(Q.write)
        except Fault as fault:
            return fault
        except OSError as error:
            return Unavailable(f"{folder} can't be read: {error.strerror}.", retry_after=10)
        return None
