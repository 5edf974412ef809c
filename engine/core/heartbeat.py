"""Writes the engine's heartbeat to the control database, and reads whether the account is paused or draining."""

from engine.core.service import Service
from engine.db import membership
from engine.db.wakeups import PAUSES, STARTS


class Heartbeat(Service):
    name = "heart"
    channels = (PAUSES,)

    async def run_once(self) -> None:
        sent, cluster_state = self.context.clock.monotonic(), self.context.cluster_state
        was_open = cluster_state.open
        cluster_state.update(await membership.heartbeat(self.context.store))
        self.context.lease.renew(sent)
        if cluster_state.open != was_open:
            self.context.wakeups.notify(STARTS)
        self.status = "beats"
