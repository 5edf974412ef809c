"""Server-sent events: format, position, limits, slow and absent readers."""

import asyncio

import pytest

from api import event_stream, event_stream_limits
from api.errors import ProtocolFault
from api.event_stream import EventStream
from api.event_stream_limits import EventStreamLimits
from workflows.events import EventPage


class Context:
    status = 0
    request_id = "r"

    def response_headers(self):
        return []


def page(*numbers, ended=False, missed=False, position=None):
    items = [{"number": n, "kind": "runEnded", "data": {}} for n in numbers]
    last = position if position is not None else max(numbers, default=0)
    return EventPage(items=items, position=last, missed=missed, ended=ended)


def chunks(first, *more, follow=True, authorize=None):
    pages = list(more)
    asked = []

    async def read(after):
        asked.append(after)
        return pages.pop(0)

    async def allowed():
        if authorize:
            authorize()

    return event_stream._chunks(first, read, allowed, follow=follow), asked


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(event_stream, "POLL_INTERVAL", 0.001)


async def text(made):
    return b"".join([chunk async for chunk in made]).decode()


async def test_events_have_their_number_as_id_and_end_with_the_run():
    made, asked = chunks(page(3, 5), page(7, ended=True))

    sent = await text(made)

    assert sent == (
        "retry: 2000\n\n"
        'id: 3\nevent: runEnded\ndata: {"number":3,"kind":"runEnded","data":{}}\n\n'
        'id: 5\nevent: runEnded\ndata: {"number":5,"kind":"runEnded","data":{}}\n\n'
        "id: 5\n\n"
        'id: 7\nevent: runEnded\ndata: {"number":7,"kind":"runEnded","data":{}}\n\n'
        "event: end\ndata: {}\n\n"
    )
    assert asked == [5]


async def test_a_stream_without_events_begins_with_its_position():
    made, _ = chunks(page(position=41), page(42, ended=True))

    assert "id: 41\n\n" in await text(made)


async def test_a_gap_is_an_event_of_its_own():
    made, _ = chunks(page(9, missed=True, ended=True))

    assert "event: gap\n" in await text(made)


async def test_a_stream_that_does_not_follow_ends_after_what_is_there():
    full = page(*range(1, 101))
    made, asked = chunks(full, page(101), follow=False)

    assert (await text(made)).count("event: runEnded") == 101
    assert asked == [100]


async def test_a_quiet_stream_has_heartbeats(monkeypatch):
    monkeypatch.setattr(event_stream, "HEARTBEAT_INTERVAL", 0.0)
    made, _ = chunks(page(), page(), page(ended=True))

    assert ": heartbeat\n\n" in await text(made)


async def test_rights_are_checked_again(monkeypatch):
    monkeypatch.setattr(event_stream, "AUTHORIZE_INTERVAL", 0.0)

    def refuse():
        raise PermissionError

    made, asked = chunks(page(), page(), authorize=refuse)

    with pytest.raises(PermissionError):
        await text(made)
    assert asked == []


def stream(made, limits):
    limit = limits.one("p", "a")
    limit.__enter__()
    return EventStream(Context(), made, limit)


async def test_a_reader_that_does_not_read_is_disconnected(monkeypatch):
    monkeypatch.setattr(event_stream, "STALLED", 0.01)
    made, _ = chunks(page(1), page(2, ended=True))
    limits, sent = EventStreamLimits(), []

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            await asyncio.sleep(3600)

    async def receive():
        await asyncio.sleep(3600)

    await asyncio.wait_for(stream(made, limits)({}, receive, send), 10)

    assert all(message.get("more_body", True) for message in sent), "the response has no end"
    assert not limits._open


async def test_a_client_that_leaves_frees_its_place(monkeypatch):
    monkeypatch.setattr(event_stream, "POLL_INTERVAL", 3600)
    made, _ = chunks(page(1))
    limits = EventStreamLimits()
    begun = asyncio.Event()

    async def send(message):
        if message["type"] == "http.response.body":
            begun.set()

    async def receive():
        await begun.wait()
        return {"type": "http.disconnect"}

    await asyncio.wait_for(stream(made, limits)({}, receive, send), 10)

    assert not limits._open


def test_streams_are_limited_by_principal_and_account(monkeypatch):
    monkeypatch.setattr(event_stream_limits, "MOST_OF_PRINCIPAL", 1)
    monkeypatch.setattr(event_stream_limits, "MOST_OF_ACCOUNT", 2)
    limits = EventStreamLimits()

    with limits.one("p1", "a"):
        with pytest.raises(ProtocolFault, match="of this principal"), limits.one("p1", "b"):
            pass
        with limits.one("p2", "a"):
            with pytest.raises(ProtocolFault, match="of this account"), limits.one("p3", "a"):
                pass
    with limits.one("p1", "a"):
        pass
