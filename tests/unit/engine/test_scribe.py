"""What a host has to say: in its order, past what others wait for, and broken off by what is final."""

import asyncio
from uuid import UUID

import pytest

from engine.ends import Disagreement, Fenced, HostEnded, gravest
from engine.outcome import Outcome
from engine.scribe import Scribe
from muster.core.errors import Unavailable
from tests.support.attempts import a_task
from tests.support.fake_clock import FakeClock

HOST = UUID(int=9)


class Store:
    """Takes down what is reported; `acts` are what happens to the next reports."""

    epoch = 1

    def __init__(self, *acts: Exception) -> None:
        self.acts = list(acts)
        self.said: list[tuple[str, ...]] = []

    async def open_session(self) -> "Store":
        return self

    def is_closed(self) -> bool:
        return False

    def terminate(self) -> None:
        """Nothing is open."""

    async def execute(self, _: str) -> None:
        """The limits of a line."""

    async def fetchval(self, _: str, host: UUID, epoch: int, *columns: str | None) -> list[UUID]:
        assert (host, epoch) == (HOST, self.epoch)
        if self.acts:
            raise self.acts.pop(0)
        self.said.append(tuple("-" if each is None else str(each.count('"i"')) for each in columns))
        return []


async def renew() -> None:
    raise HostEnded("its registration is over")


async def test_a_start_goes_past_results():
    store = Store()
    scribe = Scribe(store, HOST, FakeClock(), renew)
    for _ in range(3):
        scribe.result(a_task(), Outcome(lifecycle="Succeeded", phase="commit"))
    start = scribe.start(a_task(), 1, 180_000)
    running = asyncio.create_task(scribe.run())

    assert await start is True
    await scribe.flushed()
    running.cancel()

    assert sorted(store.said) == [("-", "-", "3", "-", "-"), ("1", "-", "-", "-", "-")]


async def test_what_was_not_heard_is_said_again():
    store = Store(Unavailable("away", code="ControlDatabaseUnavailable"))
    scribe = Scribe(store, HOST, FakeClock(), renew)
    running = asyncio.create_task(scribe.run())

    assert await scribe.intend(a_task(), "7@1/2") is True
    running.cancel()

    assert store.said == [("-", "1", "-", "-", "-")]


async def test_what_is_final_ends_it_and_is_what_its_host_hears():
    scribe = Scribe(Store(Fenced("another epoch")), HOST, FakeClock(), renew)
    scribe.give_back(a_task())

    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(scribe.run())

    assert isinstance(gravest(caught.value), HostEnded)


def test_a_stale_epoch_weighs_more_than_a_disagreement():
    inner = ExceptionGroup("", [Disagreement("memory"), Fenced("epoch")])

    assert isinstance(gravest(ExceptionGroup("", [Disagreement("first"), inner])), Fenced)
