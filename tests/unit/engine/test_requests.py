"""What is answered to a resolve has a bounded size, and says when something was left off."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import msgspec

from engine.model.server import Server
from engine.targets.resolution import Resolution, SkippedDatabase, Target
from engine.core.requests import (
    MAX_MESSAGE_LENGTH,
    MAX_BYTES,
    MAX_ELEMENTS,
    Requests,
    resolution_answer,
)
from muster.core.errors import Unavailable
from tests.support.fake_clock import FakeClock

RULE = UUID(int=1)
SERVER = Server(server_id="/s", name="eu1", hosts=("eu1.internal",), port=5432, ssl_mode="disable")


def targets(count: int, **more: object) -> list[Target]:
    return [Target(server=SERVER, database=f"d{n}", rule=RULE, **more) for n in range(count)]  # type: ignore[arg-type]


def test_a_short_answer_is_whole() -> None:
    answer = resolution_answer(
        Resolution(targets(2), [SkippedDatabase("eu1", "postgres", "ServersOwn", RULE)])
    )

    assert (answer["count"], answer["leftOutCount"], answer["truncated"]) == (2, 1, False)
    assert [each["databaseName"] for each in answer["targets"]] == ["d0", "d1"]


def test_each_list_is_cut_and_counted() -> None:
    away = targets(MAX_ELEMENTS + 1, error=Unavailable("It is away.", code="TargetUnreachable"))

    answer = resolution_answer(Resolution(away, [], missing=targets(3)))

    assert len(answer["unreachable"]) == MAX_ELEMENTS
    assert (answer["unreachableCount"], answer["missingCount"]) == (MAX_ELEMENTS + 1, 3)
    assert answer["truncated"] is True


def test_labels_and_messages_do_not_make_an_answer_endless() -> None:
    labels = {f"label_{n}": "x" * 256 for n in range(64)}
    away = targets(3, error=Unavailable("x" * 100_000, code="TargetUnreachable"))

    answer = resolution_answer(Resolution([*targets(2000, labels=labels), *away], []))

    assert len(msgspec.json.encode(answer)) < MAX_BYTES + 10_000
    assert 0 < len(answer["targets"]) < 2000
    assert (answer["count"], answer["truncated"]) == (2000, True)
    assert {len(each["message"]) for each in answer["unreachable"]} == {MAX_MESSAGE_LENGTH}


async def test_requests_of_one_caller_wait_for_each_other_and_not_those_of_others() -> None:
    hanging, answered = asyncio.Event(), []
    wakeups = SimpleNamespace(of=lambda *_: None)
    context = SimpleNamespace(store=None, clock=FakeClock(), wakeups=wakeups)
    service = Requests(context)  # type: ignore[arg-type]

    async def answer(_request: UUID, _kind: str, args: dict[str, str]) -> dict[str, str]:
        if args["askedBy"] == "greedy":
            await hanging.wait()
        return args

    async def write(_request: UUID, args: dict[str, str]) -> None:
        answered.append(args["askedBy"])

    service._answer, service._write = answer, write  # type: ignore[method-assign, assignment]
    kinds = ("resolve", "plan", "doctor", "login")

    def serve(number: int, kind: str, caller: str) -> "asyncio.Task[None]":
        args = msgspec.json.encode({"askedBy": caller}).decode()
        row = {"request_id": UUID(int=number), "kind": kind, "args": args}
        return asyncio.create_task(service._serve(row))

    many = [serve(n, kinds[n % 4], "greedy") for n in range(40)]
    others = [serve(100 + n, kind, "other") for n, kind in enumerate(kinds)]
    async with asyncio.timeout(10):
        await asyncio.gather(*others)

    assert answered == ["other"] * 4
    hanging.set()
    await asyncio.gather(*many)
    assert len(answered) == 44
