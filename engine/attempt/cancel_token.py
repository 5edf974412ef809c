"""Asks a running attempt to stop, once and with a reason."""

from collections.abc import Callable

CANCELED, HOST_STOPPED, TIMED_OUT = "Canceled", "HostStopped", "TimedOut"


class CancelToken:
    def __init__(self) -> None:
        self.reason: str | None = None
        self._wake: Callable[[], None] | None = None

    def cancel(self, reason: str = CANCELED) -> None:
        """The first reason stays."""
        if self.reason is None:
            self.reason = reason
            if self._wake:
                self._wake()

    def listen(self, wake: Callable[[], None] | None) -> None:
        """Sets the callback of the one attempt that listens; it is called at once if the token is cancelled."""
        self._wake = wake
        if wake and self.reason:
            wake()
