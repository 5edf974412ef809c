"""A response that is sent chunk by chunk, as fast as its client reads it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from litestar.types import Receive, Scope, Send

from api.request_context import RequestContext
from api.response import Answer, Headers
from muster.core import telemetry
from muster.core.errors import Unavailable

MOST = 16  # of one process at a time: each holds a page of rows in memory
STALLED = 60.0  # seconds in which a client must take what it is sent

log = telemetry.get(__name__)


class Streams:
    """How many streams are being sent."""

    def __init__(self) -> None:
        self._number = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        if self._number >= MOST:
            raise Unavailable(
                f"{MOST} streams are being sent already; try again later.",
                code="TooManyStreams",
                retry_after=5,
            )
        self._number += 1
        try:
            yield
        finally:
            self._number -= 1


class Stream(Answer):
    """A failure closes the connection before the last chunk, so that no client takes a part for the whole."""

    __slots__ = ("_chunks", "_streams")

    def __init__(
        self,
        context: RequestContext,
        headers: Headers,
        chunks: AsyncIterator[bytes],
        streams: Streams,
    ) -> None:
        super().__init__(context, 200, headers=headers)
        self._chunks = chunks
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        with self._streams.one():
            gone = asyncio.create_task(_disconnect(receive))
            try:
                await self._send(send, gone)
            except Exception:
                log.exception("stream failed", request_id=self.context.request_id)
                raise
            finally:
                gone.cancel()

    async def _send(self, send: Send, gone: "asyncio.Task[None]") -> None:
        self.context.status = self.status
        headers = self.headers + self.context.response_headers()
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        async for chunk in self._chunks:
            if gone.done():
                return
            async with asyncio.timeout(STALLED):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)  # other requests come first
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
