"""A question that only the engine answers is repeated until it has: many callers may wait at once."""

from types import SimpleNamespace
from uuid import UUID

from nodeagent.items import RequestRead
from tests.support.fake_clock import FakeClock
from workflows import engine_requests


async def test_an_engine_that_does_not_answer_is_asked_less_and_less_often(monkeypatch):
    clock, asked = FakeClock(), []

    async def look(*_):
        asked.append(clock.monotonic())
        return RequestRead(answered=False)

    monkeypatch.setattr(engine_requests.access, "look", look)
    services, none = SimpleNamespace(clock=clock), UUID(int=0)

    answer = await engine_requests.answer(services, None, None, none, patience=25.0)

    pauses = [round(b - a, 3) for a, b in zip(asked, asked[1:], strict=False)]
    assert answer is None
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 2.0)
