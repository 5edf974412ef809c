"""LISTEN on the control database: one connection per process, opened again after it was lost.

Notifications are hints that may be lost; every listener also polls.
"""

from collections.abc import Callable, Iterable

from engine.db.control_db import ControlDatabase
from muster.core.db import Connection


class Notifier:
    def __init__(self, store: ControlDatabase, on_notify: Callable[[str], None]) -> None:
        self._store = store
        self._on_notify = on_notify  # called with the channel
        self._connection: Connection | None = None

    async def ensure_listening(self, channels: Iterable[str]) -> bool:
        """True when the connection was opened by this call: earlier notifications may be lost."""
        if self._connection is not None and not self._connection.is_closed():
            return False
        self._connection = await self._store.listen(channels, self._notified)
        return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    def _notified(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        self._on_notify(channel)
