"""Wake-ups by channel: a notification sets the events of the services that listen to its channel."""

import asyncio
from collections import defaultdict

STARTS, RESULTS, TASKS, PAUSES = "muster_execution", "muster_result", "muster_task", "muster_pause"
DELIVERIES = "muster_delivery"  # within the core: no notification of the database


class WakeUps:
    """Events by channel and listener, shared by the services of one core."""

    def __init__(self) -> None:
        self._events: dict[str, dict[str, asyncio.Event]] = defaultdict(dict)

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(self._events)

    def of(self, listener: str, *channels: str) -> asyncio.Event:
        """Set by a notification on one of the channels; a restarted listener gets the same event."""
        event = asyncio.Event()
        for channel in channels:
            event = self._events[channel].setdefault(listener, event)
        return event

    def notify(self, channel: str) -> None:
        for event in self._events[channel].values():
            event.set()

    def notify_all(self) -> None:
        for channel in self._events:
            self.notify(channel)
