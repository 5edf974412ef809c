"""Creates the job executions whose time has come."""

from datetime import timedelta

from engine.part import Starter

LOOK = timedelta(seconds=1)


class Scheduler(Starter):
    name = "scheduler"

    @property
    def pause(self) -> timedelta:
        return min(LOOK, self.means.heartbeat)

    async def begin(self) -> None:
        """Nothing yet: schedules are kept and shown, and start nothing until they are followed here."""
