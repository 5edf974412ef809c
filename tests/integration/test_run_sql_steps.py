"""A run begins with its first step and the targets of that, and ends with its last one: in one transaction each."""

import json
from uuid import uuid4

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.executions import EPOCH, a_run, a_session
from tests.support.execution_fixture import SUCCEEDED, Q, Stage, a_stage

pytestmark = pytest.mark.newest

NAME = "update jobs_internal.target_group set name = $1"
PLANNED = "select ordinal, lifecycle from jobs_internal.target_execution where job_execution_id = $1 order by 1"


@pytest.fixture
async def stage(account):
    engine = await account.connect("engine")
    async with a_session(account) as owner:
        yield await a_stage(owner, engine, targets=2)
    await engine.close()


def draft(stage: Stage, run, numbers, snapshot=None):
    """Targets 1 and 2 are those of the stage's own run."""
    many = len(numbers)
    return (
        run, 1, snapshot or uuid4(), stage.job.group, b"\0", 1, "[]", ["SqlDatabase"] * many,
        [f"/servers/{n}" for n in numbers], ["s"] * many, [None] * many, [f"db{n}" for n in numbers],
        [None] * many, ["{}"] * many, [None] * many, [uuid4()] * many,
    )  # fmt: skip


async def plan(stage: Stage, run, *, numbers=(11, 12), snapshot=None, epoch=EPOCH):
    said = draft(stage, run, numbers, snapshot)
    return tuple(await stage.engine.fetchrow(Q.plan_step, epoch, *said))


async def plan_and_reserve(stage: Stage, run, numbers):
    """A task for the first of them."""
    task = ([stage.host], [stage.day], [run], [1], [1], [1], [uuid4()])
    row = await stage.engine.fetchrow(Q.plan_and_reserve, EPOCH, *draft(stage, run, numbers), *task)
    return tuple(row)[:2]


async def another(stage: Stage, overlap: str):
    await stage.owner.execute("update jobs_internal.job set overlap = $1", overlap)
    return await a_run(stage.owner, stage.job)


async def rows(stage: Stage, table: str, run):
    return await stage.owner.fetch(
        f"select * from jobs_internal.{table} where job_execution_id = $1", run
    )


async def test_a_run_begins_with_its_step_and_its_targets(stage):
    run, snapshot = await another(stage, "allow"), uuid4()

    assert await plan(stage, run, snapshot=snapshot) == ("Begun", [])
    assert await plan(stage, run, snapshot=snapshot, numbers=(13,)) == ("Begun", None)

    (step,) = await rows(stage, "step_execution", run)
    assert (step["snapshot_id"], step["lifecycle"]) == (snapshot, "WaitingForChildJobExecutions")
    planned = await stage.owner.fetch(PLANNED, run)
    assert list(map(tuple, planned)) == [(1, "Created"), (2, "Created")]


@pytest.mark.parametrize(
    ("overlap", "said"), [("skipExecution", "Skipped"), ("queueOne", "Queued")]
)
async def test_one_that_does_not_begin_has_nothing(stage, overlap, said):
    run = await another(stage, overlap)

    assert await plan(stage, run) == (said, None)

    assert await rows(stage, "step_execution", run) == []
    assert await rows(stage, "target_execution", run) == []
    assert await stage.owner.fetchval("select count(*) from jobs_internal.snapshot") == 1


async def test_those_that_another_run_works_on_are_told(stage):
    run = await another(stage, "skipTarget")

    assert await plan(stage, run, numbers=(11, 2, 12, 1)) == ("Begun", [2, 4])

    planned = [row["lifecycle"] for row in await stage.owner.fetch(PLANNED, run)]
    assert planned == ["Created", "Skipped", "Created", "Skipped"]


@pytest.mark.parametrize(
    ("overlap", "numbers", "said", "tasks"),
    [
        ("allow", (11, 12), ("Begun", []), 1),
        ("skipTarget", (11, 2), ("Begun", [2]), 0),
        ("queueOne", (11, 12), ("Queued", None), 0),
    ],
)
async def test_tasks_are_reserved_with_the_plan_if_it_is_as_expected(
    stage, overlap, numbers, said, tasks
):
    run = await another(stage, overlap)

    assert await plan_and_reserve(stage, run, numbers) == said

    assert len(await rows(stage, "task", run)) == tasks
    assert await stage.owner.fetchval("select count(*) from jobs_internal.dispatch") == tasks


async def test_news_tell_the_group_that_new_runs_begin_with(stage):
    async def news():
        return await stage.engine.fetchrow(Q.news, EPOCH, [])

    await stage.owner.execute(NAME, "Everything")
    assert (await news())["document"] is None, "the only run has begun"
    run = await another(stage, "allow")
    told = await news()
    known = [each["job_execution_id"] for each in json.loads(told["runs"])]
    assert known == [str(stage.run), str(run)]
    assert json.loads(told["document"])["targetGroupId"] == str(stage.job.group)
    await stage.owner.execute(NAME, "nothing")
    assert (await news())["document"] is None, "there is no such group"


async def test_a_stale_epoch_plans_nothing(stage):
    run = await another(stage, "allow")

    with pytest.raises(asyncpg.PostgresError) as caught:
        await plan(stage, run, epoch=EPOCH + 1)

    assert caught.value.sqlstate == "MU001"
    assert await rows(stage, "step_execution", run) == []


async def test_a_step_ends_with_its_run_once_nothing_lives(stage):
    made = await stage.reserve(1, 2)
    await stage.report(starts=made)
    await stage.report(results=[made[0] | SUCCEEDED])
    assert tuple(*await stage.ask("end_last_step", EPOCH, stage.run, 1)) == (None, None)

    await stage.report(results=[made[1] | SUCCEEDED])

    for _ in range(2):
        ended = tuple(*await stage.ask("end_last_step", EPOCH, stage.run, 1))
        assert ended == ("Succeeded", "Succeeded")
    (run,) = await rows(stage, "job_execution", stage.run)
    assert run["end_time"] is not None
