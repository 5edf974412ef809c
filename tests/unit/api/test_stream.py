"""A stream holds one page, ends early when its client goes, and is broken off rather than short."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from api import handlers, stream
from api.request_context import RequestContext
from api.stream import Stream, Streams
from muster.core.clock import Clock
from muster.core.errors import Unavailable
from workflows.result_rows import Part, Rows

SCOPE = {"headers": [], "method": "GET", "raw_path": b"/", "scheme": "http"}
ROWS = [["x" * 1000]] * 1000  # of a page: sixteen chunks


class Pages:
    """The pages of a result, and how many of them were read."""

    def __init__(self, number: int, failure: Exception | None = None) -> None:
        self.number, self.failure, self.read = number, failure, 0

    async def __aiter__(self) -> AsyncIterator[list[Part]]:
        for _ in range(self.number):
            self.read += 1
            yield [Part(["text"], ROWS)]
        if self.failure is not None:
            raise self.failure


def a_stream(pages: Pages, streams: Streams | None = None) -> Stream:
    rows = Rows(["text"], aiter(pages))
    context = RequestContext(SCOPE, Clock())
    return Stream(context, [], handlers._chunks("csv", rows), streams or Streams())


async def connected():
    await asyncio.Event().wait()


async def test_the_next_page_is_read_when_the_client_has_taken_the_last_one():
    pages, sent, read = Pages(50), 0, []

    async def send(message):
        nonlocal sent
        sent += len(message.get("body", b""))
        read.append((pages.read, sent))

    await a_stream(pages)({}, connected, send)

    size = 1000 * 1002
    assert read[-1] == (50, 50 * size + len("text\r\n"))
    assert all((number - 1) * size <= bytes_sent for number, bytes_sent in read)


async def test_a_failure_in_the_middle_leaves_the_stream_without_its_end():
    messages = []

    async def send(message):
        messages.append(message)

    with pytest.raises(Unavailable):
        await a_stream(Pages(1, Unavailable("The results changed.")))({}, connected, send)

    assert messages[0]["status"] == 200
    assert all(message["more_body"] for message in messages[1:])


async def test_nothing_more_is_read_for_a_client_that_is_gone():
    pages = Pages(1000)

    async def gone():
        return {"type": "http.disconnect"}

    async def send(_):
        pass

    await a_stream(pages)({}, gone, send)

    assert pages.read <= 1


async def test_a_client_that_takes_nothing_is_disconnected(monkeypatch):
    monkeypatch.setattr(stream, "STALLED", 0.05)

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await a_stream(Pages(1))({}, connected, send)


async def test_more_streams_than_a_process_sends_are_refused_before_they_begin():
    streams, messages = Streams(), []

    async def send(message):
        messages.append(message)

    with occupied(streams, stream.MOST), pytest.raises(Unavailable) as refused:
        await a_stream(Pages(1), streams)({}, connected, send)
    await a_stream(Pages(1), streams)({}, connected, send)

    assert refused.value.code == "TooManyStreams"
    assert messages[0]["status"] == 200


async def test_the_streams_of_one_caller_leave_room_for_others():
    streams = Streams()
    with contextlib.ExitStack() as stack:
        for _ in range(stream.MOST_OF_CALLER):
            stack.enter_context(streams.one("greedy"))
        with pytest.raises(Unavailable, match="to you already"), streams.one("greedy"):
            pass
        stack.enter_context(streams.one("other"))
    with streams.one("greedy"):
        pass


def occupied(streams: Streams, number: int):
    stack = contextlib.ExitStack()
    for each in range(number):
        stack.enter_context(streams.one(str(each)))
    return stack
