"""Wake-ups from the control database: hints that may be lost; whoever waits for one also polls."""

import asyncio
from typing import Any

from engine.core.service import Means, Part
from muster.core.db import Connection


class Bell(Part):
    """One session that listens; each part has its channel's event."""

    name = "bell"

    def __init__(self, means: Means) -> None:
        super().__init__(means)
        self._session: Connection | None = None

    async def turn(self) -> None:
        if self._session is None or self._session.is_closed():
            self._session = await self.means.store.listen(self.means.rings.channels, self._heard)
            self.means.rings.ring_all()  # what happened while nobody listened: look first
        self.doing = "listens"

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            if self._session is not None:
                self._session.terminate()

    def _heard(self, _connection: object, _pid: int, channel: str, _payload: Any) -> None:
        self.means.rings.ring(channel)
