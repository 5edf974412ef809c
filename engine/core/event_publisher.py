"""Numbers the events that committed transactions have written, with their deliveries, and deletes expired ones."""

from datetime import timedelta

from engine.context.core_context import CoreContext
from engine.core.service import Service
from engine.db.wakeups import DELIVERIES
from muster.core.failpoints import reach
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "events.sql")

INTERVAL = timedelta(seconds=0.5)  # so much later than the change an event can be read
BATCH_SIZE = 1000  # events of one transaction
PRUNE_INTERVAL = 60.0  # seconds
RETENTION_DAYS = 7
RETENTION_NUMBER = (
    500_000  # events that an account keeps at most, besides those that are being delivered
)


class EventPublisher(Service):
    name = "event publisher"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._pruned_at = 0.0

    @property
    def pause(self) -> timedelta:
        return INTERVAL

    async def run_once(self) -> None:
        while True:
            await reach("events.before_publish")
            published = await self._value(Q.publish, BATCH_SIZE)
            if published:
                await reach("events.published")
                self.context.wakeups.notify(DELIVERIES)
            if published < BATCH_SIZE:
                break
            self.heartbeat()
        now = self.context.clock.monotonic()
        if now - self._pruned_at > PRUNE_INTERVAL:
            deleted = await self._value(Q.prune, RETENTION_DAYS, RETENTION_NUMBER)
            # A batch may have left more.
            self._pruned_at = now if not deleted else now - PRUNE_INTERVAL
        self.status = "publishes"

    async def _value(self, query: str, *args: int) -> int:
        store = self.context.store
        async with store.calling() as tx:
            number: int = await tx.fetchval(query, store.epoch, *args)
            return number
