"""Says in the control database that the engine lives, and learns what it must obey."""

from engine.core.service import Service
from engine.db import membership
from engine.db.wakeups import PAUSES, STARTS


class Heartbeat(Service):
    name = "heart"
    channels = (PAUSES,)

    async def turn(self) -> None:
        sent, view = self.means.clock.monotonic(), self.means.view
        was_open = view.open
        view.learn(await membership.heartbeat(self.means.store))
        self.means.lease.renew(sent)
        if view.open != was_open:
            self.means.rings.ring(STARTS)
        self.doing = "beats"
