import asyncio
import json
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from engine.process.exit_codes import Exit, Fenced, HostEnded, Incompatible
from engine.process.lease import Lease
from engine.process.lifecycle import ProcessLifecycle, StopSignals
from fsm.launch.client import Session
from fsm.launch.protocol import Start
from muster.core.clock import Clock
from muster.core.errors import InvalidRequest, Unavailable


class Api:
    """The Workload API as a process sees it: it notes what is said and answers as told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict]] = []
        self.status = 204

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.said.append((request.url.path.rpartition("/")[2], json.loads(request.content)))
        return httpx.Response(self.status)

    @property
    def last(self) -> tuple[str, dict]:
        name, body = [each for each in self.said if each[0] != "heartbeat"][-1]
        return name, {key: value for key, value in body.items() if key != "workloadId"}


async def nothing() -> None:
    pass


async def live(
    work, api: Api, orders: StopSignals | None = None, *, control=30.0, patience=30.0, grace=5.0,
    hurry=nothing,
):  # fmt: skip
    clock = Clock()
    start = Start(
        id=uuid4(),
        kind="engine",
        url="http://api.test",
        token="t",
        heartbeat=0.01,
        patience=patience,
    )
    async with Session(start, clock, httpx.MockTransport(api)) as session:
        life = ProcessLifecycle(
            session=session, api=Lease("api", timedelta(seconds=patience), clock),
            control=Lease("control", timedelta(seconds=control), clock),
            stop_signals=orders or StopSignals(), clock=clock, grace=timedelta(seconds=grace), completion_label="handover",
        )  # fmt: skip
        async with asyncio.timeout(5):
            return await life.run(work, lambda: {"epoch": 1}, hurry)


async def until_stopped(stop: asyncio.Event) -> None:
    await stop.wait()


async def for_ever(stop: asyncio.Event) -> None:
    await asyncio.Event().wait()


def raising(error: Exception):
    async def work(stop: asyncio.Event) -> None:
        raise error

    return work


def asked(*signals: str) -> StopSignals:
    orders = StopSignals()
    for each in signals:
        getattr(orders, each)()
    return orders


async def test_asked_once_it_hands_over():
    api = Api()

    assert await live(until_stopped, api, asked("ask")) == Exit.DONE
    assert api.said[0] == (
        "running",
        {"workloadId": api.said[0][1]["workloadId"], "report": {"epoch": 1}},
    )
    assert api.last == ("success", {"result": {"handover": True}})


@pytest.mark.parametrize("signals", [("ask", "ask"), ("hurry",)])
async def test_asked_twice_or_in_a_hurry_it_stops_now(signals):
    api = Api()

    assert await live(for_ever, api, asked(*signals)) == Exit.DONE
    assert api.last == ("success", {"result": {"handover": False}})


@pytest.mark.parametrize(
    ("work", "signals", "hurried"),
    [
        (for_ever, ("ask", "ask"), True),
        (for_ever, ("hurry",), True),
        (until_stopped, ("ask",), False),
    ],
)
async def test_only_a_stop_in_a_hurry_leaves_its_last_orders(work, signals, hurried):
    left = []

    async def hurry() -> None:
        left.append(True)

    await live(work, Api(), asked(*signals), hurry=hurry)

    assert left == [True] * hurried


async def test_who_is_fenced_while_in_a_hurry_gives_no_orders():
    orders, left = StopSignals(), []

    async def work(stop: asyncio.Event) -> None:
        orders.hurry()
        raise Fenced("epoch 1 is not in charge")

    async def hurry() -> None:
        left.append(True)

    assert await live(work, Api(), orders, hurry=hurry) == Exit.FENCED
    assert left == []


async def test_last_orders_that_can_not_be_given_keep_nobody():
    api = Api()

    async def hurry() -> None:
        raise Unavailable("The control database can't be reached.")

    assert await live(for_ever, api, asked("hurry"), hurry=hurry) == Exit.DONE
    assert api.last == ("success", {"result": {"handover": False}})


async def test_work_that_does_not_end_by_itself_is_broken_off_after_its_grace():
    api = Api()

    assert await live(for_ever, api, asked("ask"), grace=0.02) == Exit.DONE
    assert api.last == ("success", {"result": {"handover": True}})


async def test_who_is_refused_stops_without_a_last_word():
    api = Api()

    async def work(stop: asyncio.Event) -> None:
        api.status = 410
        await asyncio.Event().wait()

    assert await live(work, api) == Exit.REFUSED
    assert api.last[0] == "running"


async def test_who_is_refused_at_its_first_word_never_begins():
    api, begun = Api(), []
    api.status = 410

    async def work(stop: asyncio.Event) -> None:
        begun.append(True)

    assert await live(work, api) == Exit.REFUSED
    assert begun == []


async def test_who_is_not_heard_for_all_of_its_patience_stops():
    api = Api()
    api.status = 503

    assert await live(for_ever, api, patience=0.05) == Exit.LOST


async def test_a_control_database_that_stays_away_is_told_and_ends_it():
    api = Api()

    assert await live(for_ever, api, control=0.02) == Exit.LOST
    assert api.last == (
        "failure",
        {"message": "ControlDatabaseUnavailable: unavailable for 0.02 s.", "reason": "reported"},
    )


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (Fenced("epoch 1 is not in charge"), Exit.FENCED, "Superseded: epoch 1 is not in charge."),
        (
            Incompatible("engine 0.1.0 is too old"),
            Exit.INCOMPATIBLE,
            "Incompatible: engine 0.1.0 is too old.",
        ),
        (HostEnded("host 1 has ended"), Exit.REFUSED, "HostNotKnown: host 1 has ended."),
        (
            InvalidRequest("No.", code="TargetAuthenticationFailed"),
            Exit.FAILED,
            "TargetAuthenticationFailed: No.",
        ),
        (Unavailable("Away."), Exit.FAILED, "ServiceUnavailable: Away."),
        (KeyError("canary"), Exit.FAILED, "InternalServerError: KeyError."),
    ],
)
async def test_every_end_has_its_exit_code_and_its_last_word(error, code, message):
    api = Api()

    assert await live(raising(error), api) == code
    assert api.last == ("failure", {"message": message, "reason": "reported"})
