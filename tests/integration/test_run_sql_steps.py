"""A run begins with its first step and the targets of that, and ends with its last one: in one transaction each."""

import json
from uuid import uuid4

import asyncpg
import pytest

from tests.support.executions import EPOCH, a_run, a_session
from tests.support.execution_fixture import FAILED, SUCCEEDED, Q, ExecutionFixture, an_execution

pytestmark = pytest.mark.newest

NAME = "update jobs_internal.target_group set name = $1"
PLANNED = "select ordinal, lifecycle from jobs_internal.target_execution where job_execution_id = $1 order by 1"


@pytest.fixture
async def execution(account):
    engine = await account.connect("engine")
    async with a_session(account) as owner:
        yield await an_execution(owner, engine, targets=2)
    await engine.close()


def draft(execution: ExecutionFixture, run, numbers, snapshot=None):
    """Targets 1 and 2 are those of the stage's own run."""
    many = len(numbers)
    return (
        run, 1, snapshot or uuid4(), execution.job.group, b"\0", 1, "[]", ["SqlDatabase"] * many,
        [f"/servers/{n}" for n in numbers], ["s"] * many, [None] * many, [f"db{n}" for n in numbers],
        [None] * many, ["{}"] * many, [None] * many, [uuid4()] * many, [],
    )  # fmt: skip


async def plan(execution: ExecutionFixture, run, *, numbers=(11, 12), snapshot=None, epoch=EPOCH):
    said = draft(execution, run, numbers, snapshot)
    return tuple(await execution.engine.fetchrow(Q.plan_step, epoch, *said))


async def plan_and_reserve(execution: ExecutionFixture, run, numbers):
    """A task for the first of them."""
    task = ([execution.host], [execution.day], [run], [1], [1], [1], [uuid4()])
    row = await execution.engine.fetchrow(
        Q.plan_and_reserve, EPOCH, *draft(execution, run, numbers), *task
    )
    return tuple(row)[:2]


async def another(execution: ExecutionFixture, overlap: str):
    await execution.owner.execute("update jobs_internal.job set overlap = $1", overlap)
    return await a_run(execution.owner, execution.job)


async def rows(execution: ExecutionFixture, table: str, run):
    return await execution.owner.fetch(
        f"select * from jobs_internal.{table} where job_execution_id = $1", run
    )


async def test_a_run_begins_with_its_step_and_its_targets(execution):
    run, snapshot = await another(execution, "allow"), uuid4()

    assert await plan(execution, run, snapshot=snapshot) == ("Begun", [])
    assert await plan(execution, run, snapshot=snapshot, numbers=(13,)) == ("Begun", None)

    (step,) = await rows(execution, "step_execution", run)
    assert (step["snapshot_id"], step["lifecycle"]) == (snapshot, "WaitingForChildJobExecutions")
    planned = await execution.owner.fetch(PLANNED, run)
    assert list(map(tuple, planned)) == [(1, "Created"), (2, "Created")]


@pytest.mark.parametrize(
    ("overlap", "said"), [("skipExecution", "Skipped"), ("queueOne", "Queued")]
)
async def test_one_that_does_not_begin_has_nothing(execution, overlap, said):
    run = await another(execution, overlap)

    assert await plan(execution, run) == (said, None)

    assert await rows(execution, "step_execution", run) == []
    assert await rows(execution, "target_execution", run) == []
    assert await execution.owner.fetchval("select count(*) from jobs_internal.snapshot") == 1


async def test_those_that_another_run_works_on_are_told(execution):
    run = await another(execution, "skipTarget")

    assert await plan(execution, run, numbers=(11, 2, 12, 1)) == ("Begun", [2, 4])

    planned = [row["lifecycle"] for row in await execution.owner.fetch(PLANNED, run)]
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
    execution, overlap, numbers, said, tasks
):
    run = await another(execution, overlap)

    assert await plan_and_reserve(execution, run, numbers) == said

    assert len(await rows(execution, "task", run)) == tasks
    assert await execution.owner.fetchval("select count(*) from jobs_internal.dispatch") == tasks


async def test_news_tell_the_group_that_new_runs_begin_with(execution):
    async def news():
        return await execution.engine.fetchrow(Q.news, EPOCH, [])

    await execution.owner.execute(NAME, "Everything")
    assert (await news())["document"] is None, "the only run has begun"
    run = await another(execution, "allow")
    told = await news()
    known = [each["job_execution_id"] for each in json.loads(told["runs"])]
    assert known == [str(execution.run), str(run)]
    assert json.loads(told["document"])["targetGroupId"] == str(execution.job.group)
    await execution.owner.execute(NAME, "nothing")
    assert (await news())["document"] is None, "there is no such group"


async def test_a_stale_epoch_plans_nothing(execution):
    run = await another(execution, "allow")

    with pytest.raises(asyncpg.PostgresError) as caught:
        await plan(execution, run, epoch=EPOCH + 1)

    assert caught.value.sqlstate == "MU001"
    assert await rows(execution, "step_execution", run) == []


async def test_a_step_ends_with_its_run_once_nothing_lives(execution):
    made = await execution.reserve(1, 2)
    await execution.report(starts=made)
    await execution.report(results=[made[0] | SUCCEEDED])
    assert tuple(*await execution.ask("end_last_step", EPOCH, execution.run, 1)) == (None, None)

    await execution.report(results=[made[1] | SUCCEEDED])

    for _ in range(2):
        ended = tuple(*await execution.ask("end_last_step", EPOCH, execution.run, 1))
        assert ended == ("Succeeded", "Succeeded")
    (run,) = await rows(execution, "job_execution", execution.run)
    assert run["end_time"] is not None


@pytest.fixture
async def chain(account):
    """Two live steps; the third target of the second one takes no part in the first one."""
    engine = await account.connect("engine")
    async with a_session(account) as owner:
        execution = await an_execution(owner, engine, targets=2, steps=2)
        await execution.reach(2, 3)
        yield execution
    await engine.close()


async def waits(execution: ExecutionFixture) -> list[tuple]:
    rows = await execution.ask("previous_targets", EPOCH, execution.run, 2, 1)
    return sorted((tuple(row) for row in rows), key=lambda row: row[0])


async def test_targets_of_a_later_step_wait_for_the_same_targets_in_the_step_before(chain):
    assert await waits(chain) == [(1, 1, None), (2, 2, None), (3, None, None)]

    (key,) = await chain.started(1)
    await chain.report(results=[key | SUCCEEDED])
    assert await waits(chain) == [(1, 1, "Succeeded"), (2, 2, None), (3, None, None)]


async def test_a_target_that_did_not_succeed_before_is_skipped_once_and_says_why(chain):
    (key,) = await chain.started(1)
    await chain.report(results=[key | FAILED])
    for _ in range(2):  # the second one is unfinished in the step before: it was retried meanwhile
        await chain.ask("skip_targets", EPOCH, chain.run, 2, [1, 2, 3])
    targets = [await chain.target(number, step=2) for number in (1, 2, 3)]
    assert [row["lifecycle"] for row in targets] == ["Skipped", "Created", "Skipped"]
    assert {targets[0]["end_reason"], targets[2]["end_reason"]} == {"PreviousStepNotSucceeded"}
    assert "has not succeeded on this target" in targets[0]["last_message"]
    assert "took no part" in targets[2]["last_message"]
    assert [row[0] for row in await waits(chain)] == [2]


async def test_a_resume_goes_on_in_every_halted_step_and_counts_for_all(chain):
    (key,) = await chain.started(1)
    await chain.report(results=[key | FAILED])
    for step in (1, 2):
        await chain.ask("halt_step", EPOCH, chain.run, step, "SameError", "Halted.")

    await chain.owner.execute("select jobs.sp_resume_execution($1)", chain.run)

    for number in (1, 2):
        step = await chain.step(number)
        assert (step["halted_at"], step["resumed_at"] is None) == (None, False)
        (row,) = await chain.ask("rollout_progress", EPOCH, chain.run, number, 50)
        assert (row["failures"], row["halted"]) == (0, False)
