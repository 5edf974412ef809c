"""Advances job executions, and decides which of their tasks start now and where."""

from datetime import timedelta

from engine.part import Starter

LOOK = timedelta(seconds=1)


class Controller(Starter):
    name = "controller"

    @property
    def pause(self) -> timedelta:
        return min(LOOK, self.means.heartbeat)

    async def begin(self) -> None:
        """Nothing yet: what was started stays Created until executions are advanced here."""
