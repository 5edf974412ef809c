"""Who reserves reads what became of other tasks by the same statement: each thing once, in order, or nothing at all."""

import json
from collections.abc import Mapping
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import EPOCH
from tests.support.execution_fixture import SUCCEEDED, Key, Stage, a_host

pytestmark = pytest.mark.deep


async def exchange(
    stage: Stage, *ordinals: int, known: Mapping[UUID, int] | None = None, epoch: int = EPOCH
) -> list[asyncpg.Record]:
    """These are reserved; completions behind the known ones."""
    many, marks = len(ordinals), known or {}
    return await stage.ask(
        "reserve_and_read", epoch, [stage.host] * many, [stage.day] * many, [stage.run] * many,
        [1] * many, list(ordinals), [1] * many, [uuid4() for _ in ordinals],
        [None] * many, list(marks), list(marks.values()),
    )  # fmt: skip


def said(rows: list[asyncpg.Record]) -> list[str]:
    return [each["invocation_id"] for row in rows for each in json.loads(row["items"])]


def invocations(*keys: Key) -> list[str]:
    return [key["invocation_id"] for key in keys]


async def test_completions_come_with_a_reservation_once_and_in_order(stage):
    other = await a_host(stage.engine)
    (mine,) = await stage.started(1)
    (theirs,) = await stage.started(2, host=other)
    await stage.report(results=[mine | SUCCEEDED])
    await stage.report(results=[theirs | SUCCEEDED], host=other)

    rows = await exchange(stage, 3)
    marks = {row["host_id"]: row["number"] for row in rows}

    assert said(rows) == invocations(mine, theirs)
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert (await stage.task(3))["lifecycle"] == "Created"
    assert [row["ordinal"] for row in await stage.ask("take", stage.host, 0)] == [3]
    assert await exchange(stage, known=marks) == []


async def test_what_is_known_is_forgotten_and_nothing_else(stage):
    keys = await stage.started(1, 2)
    for key in keys:
        await stage.report(results=[key | SUCCEEDED])
    first, second = await exchange(stage)

    rows = await exchange(stage, 3, known={stage.host: first["number"]})

    assert rows == [second]
    assert await exchange(stage) == [second], "read is not yet known"
    assert await exchange(stage, known={stage.host: second["number"]}) == []
    assert await stage.ask("completion_marks", EPOCH) == []


async def test_both_ways_tell_the_same(stage):
    (key,) = await stage.started(1)
    await stage.report(results=[key | SUCCEEDED])

    rows = await exchange(stage, 2)

    assert rows == await stage.ask("read_completions", EPOCH, [], [])


async def test_a_reservation_that_is_refused_forgets_nothing(stage):
    (key,) = await stage.started(1)
    await stage.report(results=[key | SUCCEEDED])
    ((host, number, _),) = await exchange(stage, 2)

    with pytest.raises(asyncpg.UniqueViolationError):
        await exchange(stage, 2, known={host: number})

    assert dict(await stage.ask("completion_marks", EPOCH)) == {host: number}


@pytest.mark.parametrize("epoch", [0, 2])
async def test_a_stale_epoch_neither_reserves_nor_reads(stage, epoch):
    (key,) = await stage.started(1)
    await stage.report(results=[key | SUCCEEDED])
    marks = dict(await stage.ask("completion_marks", EPOCH))

    with pytest.raises(asyncpg.PostgresError) as caught:
        await exchange(stage, 2, known=marks, epoch=epoch)

    assert caught.value.sqlstate == "MU001"
    assert await stage.task(2) is None
    assert dict(await stage.ask("completion_marks", EPOCH)) == marks


@pytest.mark.parametrize(
    ("query", "args", "waits"),
    [
        ("take", ["host", 0], "off"),
        ("read_completions", [EPOCH, [], []], "off"),
        ("reserve_and_read", [EPOCH, *[[]] * 10], "on"),
        ("reserve", [EPOCH, *[[]] * 9], "on"),
        ("report", ["host", EPOCH, *[None] * 5], "on"),
        ("end_run", [EPOCH, "run"], "on"),
    ],
)
async def test_only_what_is_forgotten_may_be_lost_in_a_crash(stage, query, args, waits):
    named = {"host": stage.host, "run": stage.run}
    given = [named[each] if isinstance(each, str) else each for each in args]
    await stage.engine.execute("set synchronous_commit = on")  # as everywhere but in tests
    async with stage.engine.transaction():
        await stage.ask(query, *given)

        assert await stage.engine.fetchval("show synchronous_commit") == waits
    assert await stage.engine.fetchval("show synchronous_commit") == "on"
