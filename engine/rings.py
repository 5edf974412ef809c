"""Wake-ups by channel: the bell rings, the parts that wait for it look at once."""

import asyncio
from collections import defaultdict


class Rings:
    """Events by channel, shared by the parts of one core."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(self._events)

    def of(self, channel: str) -> asyncio.Event:
        return self._events[channel]

    def ring(self, channel: str) -> None:
        self._events[channel].set()

    def ring_all(self) -> None:
        for channel in self._events:
            self.ring(channel)
