"""Server-sent events: a response that goes on until its client leaves, its execution ends or an hour has passed.

    id: 17
    event: runEnded
    data: {"number": 17, ...}

A client that was cut off sends the last id as `Last-Event-ID` and misses nothing. Events are read from the control
database once per second, so a stream holds no more than one page of them; a client that does not read is disconnected.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from litestar.types import Receive, Scope, Send

from api import auth_pipeline
from api.endpoint import Endpoint
from api.request_context import RequestContext
from api.response import Answer, encode
from api.services import Services
from muster.core import telemetry
from muster.core.errors import Fault, FieldError, refuse
from workflows.events import EventPage
from workflows.model.resource import Call

AFTER, FOLLOW = "after", "follow"
LAST_EVENT_ID = b"last-event-id"
POLL_INTERVAL = 1.0  # seconds
HEARTBEAT_INTERVAL = 15.0  # seconds without an event, after which a comment is sent
AUTHORIZE_INTERVAL = 60.0  # seconds; a caller whose role was removed is disconnected
STALLED = 10.0  # seconds in which a client must take what it is sent
LONGEST = 3600.0  # seconds; the client connects again with a valid token
RETRY = b"retry: 2000\n\n"  # milliseconds after which a client connects again
LARGEST_NUMBER = 2**63 - 1
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]

Read = Callable[[int | None], Awaitable[EventPage]]
log = telemetry.get(__name__)


async def events(
    services: Services, endpoint: Endpoint, context: RequestContext, _: Receive
) -> Answer:
    """The first page is read before the response begins, so that refusals are answers like any other."""
    call = await auth_pipeline.admit(services, context)
    feed = endpoint.feed
    assert feed

    async def read(after: int | None) -> EventPage:
        page: EventPage = await feed.run(services.workflows, call, context.id, after)
        return page

    async def authorize() -> None:
        await services.authorize(services.workflows, call, endpoint.action, context.id)

    first = await read(_position(context, call))
    follow = call.query.get(FOLLOW, "true").lower() == "true"
    limit = services.event_streams.one(
        f"{call.principal.tenant_id}/{call.principal.id}", context.id.upto("jobAgents").key
    )
    limit.__enter__()
    return EventStream(context, _chunks(first, read, authorize, follow=follow), limit)


def _position(context: RequestContext, call: Call) -> int | None:
    """The header is that of a client that connects again, so it wins over the query."""
    name, text = AFTER, call.query.get(AFTER)
    if LAST_EVENT_ID in context.headers:
        name, text = "Last-Event-ID", context.header(LAST_EVENT_ID)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_NUMBER):
        refuse([FieldError(name, "The number of an event, as a stream had it in `id`.")])
    return int(text)


async def _chunks(
    page: EventPage, read: Read, authorize: Callable[[], Awaitable[None]], *, follow: bool
) -> AsyncIterator[bytes]:
    now = asyncio.get_running_loop().time
    begun = authorized = sent = now()
    known = -1  # the position that the client knows even if there are no events
    yield RETRY
    while True:
        chunk = _encoded(page)
        if chunk or now() - sent > HEARTBEAT_INTERVAL:
            sent = now()
            yield chunk or b": heartbeat\n\n"
        if page.ended:
            yield b"event: end\ndata: {}\n\n"
            return
        if not page.full:
            if not follow or now() - begun > LONGEST:
                return
            if page.position != known:
                known = page.position
                yield f"id: {known}\n\n".encode()
            await asyncio.sleep(POLL_INTERVAL)
        if now() - authorized > AUTHORIZE_INTERVAL:
            await authorize()
            authorized = now()
        page = await read(page.position)


def _encoded(page: EventPage) -> bytes:
    parts = [b'event: gap\ndata: {"reason": "Earlier events were deleted."}\n\n'] * page.missed
    parts += [
        b"id: %d\nevent: %s\ndata: %s\n\n" % (each["number"], each["kind"].encode(), encode(each))
        for each in page.items
    ]
    return b"".join(parts)


class EventStream(Answer):
    """Ends without the last chunk of HTTP when it was cut off, so that a client connects again."""

    __slots__ = ("_chunks", "_limit")

    def __init__(
        self,
        context: RequestContext,
        chunks: AsyncIterator[bytes],
        limit: contextlib.AbstractContextManager[None],
    ) -> None:
        super().__init__(context, 200, headers=list(HEADERS))
        self._chunks = chunks
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        gone = asyncio.create_task(_disconnected(receive))
        sending = asyncio.create_task(self._send(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            log.info("event stream is not read", request_id=self.context.request_id)
        except Fault as fault:
            log.info("event stream ended", request_id=self.context.request_id, why=fault.code)
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.wait({gone, sending})
            self._limit.__exit__(None, None, None)

    async def _send(self, send: Send) -> None:
        self.context.status = self.status
        headers = self.headers + self.context.response_headers()
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        async for chunk in self._chunks:
            async with asyncio.timeout(STALLED):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
