"""The first words of PostgreSQL's protocol, without a login: whether a server answers to them."""

import asyncio
import struct
from typing import cast

PROTOCOL = 196_608  # 3.0
AUTHENTICATION, ERROR = b"R", b"E"
BEFORE_THEM = (b"N", b"v")  # a notice, or which version of the protocol it speaks
USER = "muster"  # PostgreSQL needs a name before it says how it authenticates


class Startup(asyncio.Protocol):
    """Sends the startup message and waits for the server's first answer."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def answer(self) -> str | None:
        """None: it asks for a login, or lets us in; otherwise the SQLSTATE by which it refused."""
        return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        named = ("user", USER, "database", self._database, "application_name", "muster-check")
        text = b"".join(each.encode() + b"\0" for each in named) + b"\0"
        message = struct.pack("!ii", len(text) + 8, PROTOCOL) + text
        cast("asyncio.WriteTransport", transport).write(message)

    def data_received(self, data: bytes) -> None:
        """Whole messages, one at a time: the guard in front of us sees to that."""
        kind = data[:1]
        if self._answer.done() or kind in BEFORE_THEM:
            return
        if kind == AUTHENTICATION:
            self._answer.set_result(None)
        elif kind == ERROR:
            fields = data[5:].split(b"\0")
            state = next((each[1:] for each in fields if each[:1] == b"C"), b"")
            self._answer.set_result(state.decode("ascii", "replace"))
        else:
            self._answer.set_exception(ConnectionError("it does not speak PostgreSQL's protocol"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed the connection"))
