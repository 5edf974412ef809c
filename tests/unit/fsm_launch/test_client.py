"""A process that is refused stops, one that is unheard stops in time, and nothing else stops it."""

import asyncio
import itertools
from uuid import UUID

import httpx
import msgspec
import pytest

from fsm.launch.client import Refused, Session, read_start
from fsm.launch.protocol import Create, Kind, Start
from muster.core.egress import Addresses
from muster.core.errors import InvalidRequest, Unavailable
from tests.support.fake_clock import FakeClock

START = Start(
    id=UUID(int=5), kind=Kind.HOST, url="http://plane:1", token="w1.5.x", heartbeat=5, patience=30
)


class Plane:
    """Answers as told; the last answer stays."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        body = {"message": "no"} if answer >= 400 else None
        return httpx.Response(answer, json=body)

    @property
    def paths(self) -> list[str]:
        return [request.url.path.rpartition("/")[2] for request in self.asked]


def session(plane: Plane, clock: FakeClock | None = None) -> Session:
    return Session(START, clock or FakeClock(), httpx.MockTransport(plane))


async def test_it_says_that_it_runs_and_then_beats():
    plane = Plane(204)
    async with session(plane) as made:
        made.tell(lambda: {"tasks": 3})
        await made.running({"version": "1"})
        while len(plane.asked) < 4:
            await asyncio.sleep(0)
        await made.success({"rows": 1})

    assert plane.paths[:4] == ["running", "heartbeat", "heartbeat", "heartbeat"]
    assert plane.paths[-1] == "success"
    assert msgspec.json.decode(plane.asked[1].content)["report"] == {"tasks": 3}
    assert {r.headers["authorization"] for r in plane.asked} == {"Bearer w1.5.x"}


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_refusal_is_the_end(status):
    async with session(Plane(status)) as made:
        with pytest.raises(Refused, match="no"):
            await made.running()
        assert made.lost.is_set()
        assert str(status) in made.why


async def test_a_refused_heartbeat_is_the_end():
    async with session(Plane(204, 204, 410)) as made:
        await made.running()
        await asyncio.wait_for(made.lost.wait(), 5)
        assert "410" in made.why


async def test_trouble_is_endured_until_patience_ends():
    clock = FakeClock()
    plane = Plane(503, 429, httpx.ConnectError("away"), 204, 500)
    async with session(plane, clock) as made:
        await made.running()  # the first three tries go wrong
        heard = clock.monotonic()
        await asyncio.wait_for(made.lost.wait(), 5)

    assert 30 < clock.monotonic() - heard < 30 + 2 * START.heartbeat
    assert made.why == "no answer for 30 s"


async def test_who_is_never_heard_gives_up():
    async with session(Plane(httpx.ConnectError("away"))) as made:
        with pytest.raises(Unavailable):
            await made.running()
        assert made.lost.is_set()


async def test_a_mistake_is_told_at_once():
    plane = Plane(400)
    async with session(plane) as made:
        with pytest.raises(InvalidRequest):
            await made.failure("x")
    assert len(plane.asked) == 1
    assert not made.lost.is_set()


async def test_an_engine_asks_for_a_command():
    plane = Plane(204)
    async with session(plane) as made:
        await made.create(Create(workload_id=UUID(int=6)))
    assert plane.paths == ["create"]


async def test_an_answer_without_words_is_still_a_refusal():
    transport = httpx.MockTransport(lambda _: httpx.Response(410, content=b"<html>"))
    async with Session(START, FakeClock(), transport) as made:
        with pytest.raises(Refused, match="410"):
            await made.running()


def test_a_start_file_is_read_back(tmp_path):
    path = tmp_path / "start"
    path.write_bytes(msgspec.json.encode(START))
    assert read_start(path) == START


async def test_the_addresses_of_the_control_plane_come_before_the_work_and_with_each_heartbeat():
    numbers = itertools.count(6001)

    def plane(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/addresses"):
            return httpx.Response(204)
        return httpx.Response(200, json={"embedded": [["127.0.0.1", next(numbers)]], "newer": 1})

    known: list[Addresses] = []
    async with Session(START, FakeClock(), httpx.MockTransport(plane)) as made:
        made.on_addresses = known.append
        await made.running()
        before_work = len(known)
        while len(known) < 3:
            await asyncio.sleep(0)

    assert before_work == 1
    assert [each.embedded for each in known[:3]] == [
        frozenset({("127.0.0.1", port)}) for port in (6001, 6002, 6003)
    ]


async def test_addresses_that_can_t_be_read_leave_the_old_ones_and_the_heartbeats():
    plane = Plane(204)
    known: list[Addresses] = []
    async with session(plane) as made:
        made.on_addresses = known.append
        await made.running()
        while plane.paths.count("heartbeat") < 3:
            await asyncio.sleep(0)

    assert known == []
