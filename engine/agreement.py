"""Compares memory with the database: what stays different although it could be learned is a mistake."""

from datetime import timedelta

from engine import instance
from engine.ends import Disagreement
from engine.part import Means, Part


class Agreement(Part):
    """A change that is only on its way has been learned by the next look; the pause is long enough."""

    name = "agreement"

    def __init__(self, means: Means) -> None:
        super().__init__(means)
        self._suspected: frozenset[str] = frozenset()

    @property
    def pause(self) -> timedelta:
        return 3 * self.means.heartbeat

    async def turn(self) -> None:
        found = self.means.view.differs(await instance.look(self.means.store))
        if wrong := found & self._suspected:
            raise Disagreement("; ".join(sorted(wrong)))
        self._suspected = found
        self.doing = f"suspects {len(found)} things" if found else "agrees"
