"""The core's service that listens for notifications and wakes the other services."""

import asyncio

from engine.context.core_context import CoreContext
from engine.core.service import Service
from engine.db.notifier import Notifier


class Listener(Service):
    name = "listener"

    def __init__(self, means: CoreContext) -> None:
        super().__init__(means)
        self._notifier = Notifier(means.store, means.rings.ring)

    async def turn(self) -> None:
        if await self._notifier.ensure_listening(self.means.rings.channels):
            self.means.rings.ring_all()  # notifications sent before it are lost: look first
        self.doing = "listens"

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._notifier.close()
