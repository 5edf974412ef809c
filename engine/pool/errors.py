"""Errors of the connection pool."""

from muster.core.errors import Unavailable


class Full(Unavailable):
    """No session is available and nothing was sent: the target waits without losing an attempt."""

    def __init__(self, message: str, why: str = "ServerFull", server_message: str = "") -> None:
        super().__init__(message, code="ServerFull")
        self.why = why  # a wait_reason
        self.server_message = server_message  # of a server that refused the connection
