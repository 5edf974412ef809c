"""The core's service that listens for notifications and wakes the other services."""

import asyncio

from engine.context.core_context import CoreContext
from engine.core.service import Service
from engine.db.notifier import Notifier


class Listener(Service):
    name = "listener"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._notifier = Notifier(context.store, context.wakeups.notify)

    async def run_once(self) -> None:
        if await self._notifier.ensure_listening(self.context.wakeups.channels):
            self.context.wakeups.notify_all()  # earlier notifications are lost: every service polls
        self.status = "listens"

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._notifier.close()
