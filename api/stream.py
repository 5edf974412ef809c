"""A response that is sent chunk by chunk, as fast as its client reads it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from litestar.types import Receive, Scope, Send

from api.request_context import RequestContext
from api.response import Answer, Headers
from muster.core import telemetry
from muster.core.errors import Unavailable

MOST = 16  # of one process at a time: each holds a page of rows in memory
MOST_OF_CALLER = 4  # of them: a client that reads slowly keeps its own for long
STALLED = 60.0  # seconds in which a client must take what it is sent

log = telemetry.get(__name__)


class Streams:
    """How many streams are being sent."""

    def __init__(self) -> None:
        self._by_caller: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, caller: str) -> Iterator[None]:
        if self._by_caller[caller] >= MOST_OF_CALLER:
            raise _too_many(f"{MOST_OF_CALLER} streams are being sent to you already")
        if self._by_caller.total() >= MOST:
            raise _too_many(f"{MOST} streams are being sent already")
        self._by_caller[caller] += 1
        try:
            yield
        finally:
            self._by_caller[caller] -= 1
            self._by_caller += Counter()  # without those that have none left


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
        who = self.context.principal
        with self._streams.one(f"{who.tenant_id}/{who.id}" if who else ""):
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


def _too_many(what: str) -> Unavailable:
    message = f"{what}; try again later."
    return Unavailable(message, code="TooManyStreams", retry_after=5)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
