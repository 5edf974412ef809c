"""Wake-ups by channel: the bell rings, the parts that wait for it look at once."""

import asyncio
from collections import defaultdict

STARTS, RESULTS, TASKS, PAUSES = "muster_execution", "muster_result", "muster_task", "muster_pause"


class WakeUps:
    """Events by channel and listener, shared by the parts of one core."""

    def __init__(self) -> None:
        self._events: dict[str, dict[str, asyncio.Event]] = defaultdict(dict)

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(self._events)

    def of(self, listener: str, *channels: str) -> asyncio.Event:
        """Set whenever one of the channels rings; a listener that begins anew has the same one."""
        event = asyncio.Event()
        for channel in channels:
            event = self._events[channel].setdefault(listener, event)
        return event

    def ring(self, channel: str) -> None:
        for event in self._events[channel].values():
            event.set()

    def ring_all(self) -> None:
        for channel in self._events:
            self.ring(channel)
