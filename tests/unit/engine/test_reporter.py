"""What a host has to say: in its order, past what others wait for, and broken off by what is final."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from engine.process.exit_codes import Disagreement, Fenced, HostEnded, most_severe
from engine.attempt.outcome import Outcome
from engine.host.reporter import Reporter
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
        self.refused: set[UUID] = set()
        self.unbearable: set[UUID] = set()  # what is said of them can't be written

    async def open_session(self) -> "Store":
        return self

    def is_closed(self) -> bool:
        return False

    def terminate(self) -> None:
        """Nothing is open."""

    async def execute(self, _: str) -> None:
        """The limits of a line."""

    async def fetch(
        self, _: str, host: UUID, epoch: int, *columns: str | None, timeout: float
    ) -> list[tuple[list[UUID]]]:
        assert (host, epoch) == (HOST, self.epoch)
        if self.acts:
            raise self.acts.pop(0)
        whole = "".join(each for each in columns if each is not None)
        if columns[0] and any(str(each) in columns[0] for each in self.unbearable):
            raise asyncpg.DataError("it can't be written")
        self.said.append(
            tuple("-" if each is None else str(each.count('"invocation_id"')) for each in columns)
        )
        return [([each for each in self.refused if str(each) in whole],)]


async def renew() -> None:
    raise HostEnded("its registration is over")


async def test_a_start_goes_past_results():
    store = Store()
    reporter = Reporter(store, HOST, FakeClock(), renew)
    for _ in range(3):
        reporter.finished(a_task(), Outcome(lifecycle="Succeeded", phase="commit"))
    start = reporter.started([a_task()], 1, 180_000)
    running = asyncio.create_task(reporter.run())

    assert await start == set()
    await reporter.flushed()
    running.cancel()

    assert sorted(store.said) == [("-", "-", "3", "-", "-"), ("1", "-", "-", "-", "-")]


async def test_starts_that_belong_together_are_said_in_one_breath():
    store = Store()
    reporter = Reporter(store, HOST, FakeClock(), renew)
    start = reporter.started([a_task() for _ in range(5)], 1, 180_000)
    running = asyncio.create_task(reporter.run())

    assert await start == set()
    running.cancel()

    assert store.said == [("5", "-", "-", "-", "-")]


async def test_of_several_starts_those_that_were_refused_are_told():
    store = Store()
    reporter = Reporter(store, HOST, FakeClock(), renew)
    tasks = [a_task() for _ in range(5)]
    store.refused = {tasks[1].invocation_id, tasks[4].invocation_id}
    running = asyncio.create_task(reporter.run())

    assert await reporter.started(tasks, 1, 180_000) == store.refused
    running.cancel()


async def test_one_start_that_cannot_be_written_does_not_hurt_the_others():
    store = Store()
    reporter = Reporter(store, HOST, FakeClock(), renew)
    first, other = ([a_task() for _ in range(3)] for _ in range(2))
    store.unbearable = {first[1].invocation_id}
    store.refused = {first[2].invocation_id}
    both = [reporter.started(tasks, 1, 180_000) for tasks in (first, other)]
    told: list[set[UUID]] = []
    both[0].add_done_callback(lambda said: told.append(set(said.result())))
    running = asyncio.create_task(reporter.run())

    assert await asyncio.gather(*both) == [store.unbearable | store.refused, set()]
    assert told == [store.unbearable | store.refused], "not before all of them are known"
    await reporter.flushed()
    running.cancel()

    alone, given_back = ("1", "-", "-", "-", "-"), ("-", "-", "-", "1", "-")
    assert store.said == [alone, given_back, *[alone] * 4]


async def test_whoever_waited_for_several_starts_may_be_gone_before_they_are_said():
    store = Store()
    reporter = Reporter(store, HOST, FakeClock(), renew)
    reporter.started([a_task() for _ in range(3)], 1, 180_000).cancel()
    running = asyncio.create_task(reporter.run())

    assert await reporter.started([a_task()], 1, 180_000) == set()
    running.cancel()

    assert store.said == [("4", "-", "-", "-", "-")]


async def test_what_was_not_heard_is_said_again():
    store = Store(Unavailable("away", code="ControlDatabaseUnavailable"))
    reporter = Reporter(store, HOST, FakeClock(), renew)
    running = asyncio.create_task(reporter.run())

    assert await reporter.commit_intent(a_task(), "7@1/2") == set()
    running.cancel()

    assert store.said == [("-", "1", "-", "-", "-")]


async def test_what_is_final_ends_it_and_is_what_its_host_hears():
    reporter = Reporter(Store(Fenced("another epoch")), HOST, FakeClock(), renew)
    reporter.released(a_task())

    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(reporter.run())

    assert isinstance(most_severe(caught.value), HostEnded)


def test_a_stale_epoch_weighs_more_than_a_disagreement():
    inner = ExceptionGroup("", [Disagreement("memory"), Fenced("epoch")])

    assert isinstance(most_severe(ExceptionGroup("", [Disagreement("first"), inner])), Fenced)
