"""A TCP line to a server on this machine that a test can cut and mend."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

HOST = "127.0.0.1"


@dataclass
class TcpProxy:
    to: int
    port: int = 0
    accepting: bool = True
    silent_at: bytes = b""  # it holds itself when this is said
    flows: asyncio.Event = field(default_factory=asyncio.Event)  # unset: nothing gets through
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """What is open breaks, and whoever calls anew is hung up on."""
        self.accepting = False
        for writer in self._open:
            writer.transport.abort()

    def hold(self) -> None:
        """Everything stays open and nothing gets through, as behind a broken switch."""
        self.flows.clear()

    def restore(self) -> None:
        self.accepting = True
        self.flows.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.accepting:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection(HOST, self.to)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there_writer}
        self._open |= both
        try:
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        finally:
            self._open -= both
            for each in both:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.silent_at and self.silent_at in data:
                    self.hold()
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def proxy_to(port: int, *, silent_at: bytes = b"") -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy(port, silent_at=silent_at)
    proxy.restore()
    server = await asyncio.start_server(proxy.serve, HOST, 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        proxy.restore()
        proxy.cut()
        server.close()
        await server.wait_closed()
