"""Keeps the account's own things in order: a host that must have ended itself is seen off."""

from datetime import datetime
from uuid import UUID

from engine import instance
from engine.part import Means, Part
from muster.core import telemetry

log = telemetry.get(__name__)


class Maintainer(Part):
    """A host is lost when it was silent for all of its patience, counted only while we could look.

    So after an outage of the control database every host has its full time to come back.
    """

    name = "maintainer"

    def __init__(self, means: Means) -> None:
        super().__init__(means)
        self._reads = means.view.reads
        self._looked = means.clock.monotonic()
        self._silent: dict[UUID, tuple[datetime, float]] = {}  # last beat, seconds since then

    async def turn(self) -> None:
        view = self.means.view
        if view.reads == self._reads:
            return
        now = self.means.clock.monotonic()
        passed = min(now - self._looked, 2 * self.pause.total_seconds())
        self._reads, self._looked = view.reads, now
        self._silent = {
            id: (host.heartbeat_at, self._since(id, host.heartbeat_at, passed))
            for id, host in view.hosts.items()
        }
        limit = (self.means.host_patience + 2 * self.pause).total_seconds()
        for id, (_, silent) in self._silent.items():
            if silent > limit:
                await instance.end_lost_host(self.means.store, id)
                log.warning("a lost host was seen off", host=id, silent=round(silent))

    def _since(self, id: UUID, beat: datetime, passed: float) -> float:
        before, silent = self._silent.get(id, (None, 0.0))
        return silent + passed if before == beat else 0.0
