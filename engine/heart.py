"""Says in the control database that the engine lives, and learns what it must obey."""

from engine import instance
from engine.part import Part


class Heart(Part):
    name = "heart"

    async def turn(self) -> None:
        sent = self.means.clock.monotonic()
        self.means.view.learn(await instance.heartbeat(self.means.store))
        self.means.lease.renew(sent)
        self.doing = "beats"
