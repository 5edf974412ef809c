"""Who reserves reads what became of other tasks by the same statement: each thing once, in order, or nothing at all."""

import json
from collections.abc import Mapping
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import EPOCH
from tests.support.execution_fixture import SUCCEEDED, Key, ExecutionFixture, a_host

pytestmark = pytest.mark.deep


async def exchange(
    execution: ExecutionFixture,
    *ordinals: int,
    known: Mapping[UUID, int] | None = None,
    epoch: int = EPOCH,
) -> list[asyncpg.Record]:
    """These are reserved; completions behind the known ones."""
    many, marks = len(ordinals), known or {}
    return await execution.ask(
        "reserve_and_read", epoch, [execution.host] * many, [execution.day] * many, [execution.run] * many,
        [1] * many, list(ordinals), [1] * many, [uuid4() for _ in ordinals],
        [None] * many, list(marks), list(marks.values()),
    )  # fmt: skip


def said(rows: list[asyncpg.Record]) -> list[str]:
    return [each["invocation_id"] for row in rows for each in json.loads(row["items"])]


def invocations(*keys: Key) -> list[str]:
    return [key["invocation_id"] for key in keys]


async def test_completions_come_with_a_reservation_once_and_in_order(execution):
    other = await a_host(execution.engine)
    (mine,) = await execution.started(1)
    (theirs,) = await execution.started(2, host=other)
    await execution.report(results=[mine | SUCCEEDED])
    await execution.report(results=[theirs | SUCCEEDED], host=other)

    rows = await exchange(execution, 3)
    marks = {row["host_id"]: row["number"] for row in rows}

    assert said(rows) == invocations(mine, theirs)
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert (await execution.task(3))["lifecycle"] == "Created"
    assert [row["ordinal"] for row in await execution.ask("take", execution.host, 0)] == [3]
    assert await exchange(execution, known=marks) == []


async def test_what_is_known_is_forgotten_and_nothing_else(execution):
    keys = await execution.started(1, 2)
    for key in keys:
        await execution.report(results=[key | SUCCEEDED])
    first, second = await exchange(execution)

    rows = await exchange(execution, 3, known={execution.host: first["number"]})

    assert rows == [second]
    assert await exchange(execution) == [second], "read is not yet known"
    assert await exchange(execution, known={execution.host: second["number"]}) == []
    assert await execution.ask("completion_marks", EPOCH) == []


async def test_both_ways_tell_the_same(execution):
    (key,) = await execution.started(1)
    await execution.report(results=[key | SUCCEEDED])

    rows = await exchange(execution, 2)

    assert rows == await execution.ask("read_completions", EPOCH, [], [])


async def test_a_reservation_that_is_refused_forgets_nothing(execution):
    (key,) = await execution.started(1)
    await execution.report(results=[key | SUCCEEDED])
    ((host, number, _),) = await exchange(execution, 2)

    with pytest.raises(asyncpg.UniqueViolationError):
        await exchange(execution, 2, known={host: number})

    assert dict(await execution.ask("completion_marks", EPOCH)) == {host: number}


@pytest.mark.parametrize("epoch", [0, 2])
async def test_a_stale_epoch_neither_reserves_nor_reads(execution, epoch):
    (key,) = await execution.started(1)
    await execution.report(results=[key | SUCCEEDED])
    marks = dict(await execution.ask("completion_marks", EPOCH))

    with pytest.raises(asyncpg.PostgresError) as caught:
        await exchange(execution, 2, known=marks, epoch=epoch)

    assert caught.value.sqlstate == "MU001"
    assert await execution.task(2) is None
    assert dict(await execution.ask("completion_marks", EPOCH)) == marks


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
async def test_only_what_is_forgotten_may_be_lost_in_a_crash(execution, query, args, waits):
    named = {"host": execution.host, "run": execution.run}
    given = [named[each] if isinstance(each, str) else each for each in args]
    await execution.engine.execute("set synchronous_commit = on")  # as everywhere but in tests
    async with execution.engine.transaction():
        await execution.ask(query, *given)

        assert await execution.engine.fetchval("show synchronous_commit") == waits
    assert await execution.engine.fetchval("show synchronous_commit") == "on"
