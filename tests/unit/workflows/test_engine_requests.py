"""A question that only the engine answers is repeated until it has: many callers may wait at once."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

from nodeagent.items import RequestRead
from workflows import engine_requests


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, delay: timedelta) -> None:
        self.now += delay.total_seconds()


async def test_an_engine_that_does_not_answer_is_asked_less_and_less_often(monkeypatch):
    clock, asked = Clock(), []

    async def look(*_):
        asked.append(clock.now)
        return RequestRead(answered=False)

    monkeypatch.setattr(engine_requests.access, "look", look)
    services, none = SimpleNamespace(clock=clock), UUID(int=0)

    answer = await engine_requests.answer(services, None, None, none, patience=25.0)

    pauses = [round(b - a, 3) for a, b in zip(asked, asked[1:], strict=False)]
    assert answer is None
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 2.0)
