"""What the database refuses to believe of an execution, whoever writes it."""

import itertools
from uuid import uuid4

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.executions import a_job, a_run, a_session, a_step, some_targets

PARENT = [
    "Created", "InProgress", "WaitingForChildJobExecutions", "WaitingForRetry",
    "Succeeded", "SucceededWithSkipped", "Failed", "TimedOut", "Canceled", "Skipped",
]  # fmt: skip
LIFECYCLES = {
    "job_execution": PARENT,
    "step_execution": PARENT,
    "target_execution": [
        "Created", "InProgress", "WaitingForRetry",
        "Succeeded", "Failed", "TimedOut", "Canceled", "Skipped",
    ],
    "task": ["Created", "InProgress", "Succeeded", "Failed", "TimedOut", "Canceled"],
}  # fmt: skip
LIVE = {"Created", "InProgress", "WaitingForChildJobExecutions", "WaitingForRetry"}
ILLEGAL = {
    "job_execution": {
        *itertools.product(["Created"], ["WaitingForRetry", "Succeeded", "SucceededWithSkipped"]),
        *itertools.product(["WaitingForRetry"], ["Succeeded", "SucceededWithSkipped", "Skipped"]),
    },
    "step_execution": set(),
    "target_execution": {
        ("Created", "WaitingForRetry"),
        ("Created", "Succeeded"),
        ("WaitingForRetry", "Succeeded"),
    },
    "task": {("Created", "Succeeded"), ("Created", "Failed"), ("Created", "TimedOut")},
}
TASK = """
insert into jobs_internal.task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id,
                                epoch, host_id, lifecycle, start_time, end_time)
select run_day, job_execution_id, step_id, 1, $2, gen_random_uuid(), 1, gen_random_uuid(), $3,
       case when $3 <> 'Created' then now() end,
       case when $3 not in ('Created', 'InProgress') then now() end
  from jobs_internal.step_execution where job_execution_id = $1
"""


def is_legal(table: str, old: str, new: str) -> bool:
    if new == "Created":  # a retry: all of its attempts, none here, are free
        return table == "target_execution" and old not in LIVE and old != "Succeeded"
    return old in LIVE and (old, new) not in ILLEGAL[table]


@pytest.fixture
async def owner(settings, db, targets):
    account = await installed(settings, db, targets)
    async with a_session(account) as session:
        yield session


@pytest.fixture
async def run(owner):
    """A run with a step, a target and a task."""
    job = await a_job(owner)
    made = await a_run(owner, job)
    await some_targets(owner, job, made, 1)
    await owner.execute(TASK, made, 1, "Created")
    return made


async def put(owner, table, run, lifecycle):
    """Its only row in that lifecycle, by no move at all."""
    await owner.execute(f"alter table jobs_internal.{table} disable trigger user")
    await move(owner, table, run, lifecycle)
    await owner.execute(f"alter table jobs_internal.{table} enable trigger user")


async def move(owner, table, run, lifecycle):
    over = lifecycle not in LIVE
    started = table == "task" and lifecycle != "Created"
    await owner.execute(
        f"update jobs_internal.{table} set lifecycle = $2,"
        " end_time = case when $3 then clock_timestamp() end"
        + (", start_time = clock_timestamp()" if started else "")
        + (", start_time = null" if table == "task" and not started else "")
        + " where job_execution_id = $1",
        run,
        lifecycle,
        over,
    )


@pytest.mark.parametrize("table", LIFECYCLES)
async def test_each_legal_move_is_taken_and_each_other_one_refused(owner, run, table):
    wrong = []
    for old, new in itertools.permutations(LIFECYCLES[table], 2):
        transaction = owner.transaction()
        await transaction.start()
        await owner.execute("set constraints all deferred")
        await put(owner, table, run, old)
        try:
            await move(owner, table, run, new)
            taken = True
        except asyncpg.PostgresError as error:
            assert error.sqlstate == "MU013", (old, new, error)
            taken = False
        await transaction.rollback()
        if taken != is_legal(table, old, new):
            wrong.append((old, new))

    assert wrong == []


@pytest.mark.parametrize("table", LIFECYCLES)
async def test_a_lifecycle_that_nobody_knows_is_refused(owner, run, table):
    with pytest.raises(asyncpg.CheckViolationError):
        await move(owner, table, run, "Dreaming")


@pytest.mark.parametrize("table", LIFECYCLES)
async def test_what_is_over_has_an_end_and_nothing_else_has_one(owner, run, table):
    change = f"update jobs_internal.{table} set start_time = now(), lifecycle = $1, end_time = $2"

    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(change, "Canceled", None)
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(change.replace("$2", "now()"), "InProgress")


async def test_one_attempt_lives_at_a_time(owner, run):
    with pytest.raises(asyncpg.UniqueViolationError) as caught:
        await owner.execute(TASK, run, 2, "InProgress")
    assert "task_" in str(caught.value)

    await move(owner, "task", run, "Canceled")
    await owner.execute(TASK, run, 2, "InProgress")


async def test_a_reservation_that_never_started_may_be_canceled_without_a_start(owner, run):
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute("update jobs_internal.task set lifecycle = 'InProgress'")

    await owner.execute(
        "update jobs_internal.task set lifecycle = 'Canceled', end_time = now() where start_time is null"
    )


async def test_a_slot_fires_once(owner):
    job = await a_job(owner)
    fire = (
        "insert into jobs_internal.job_execution"
        " (job_execution_id, job_id, job_version, run_day, create_time, origin, slot, actor, door)"
        " values (gen_random_uuid(), $1, 1, '2026-01-02', '2026-01-02 03:00+00', 'slot', $2,"
        "         'engine', 'engine')"
    )
    slot = await owner.fetchval("select '2026-01-02 03:00+00'::timestamptz")
    await owner.execute(fire, job.id, slot)

    with pytest.raises(asyncpg.UniqueViolationError):
        await owner.execute(fire, job.id, slot)

    await owner.execute(fire, (await a_job(owner, "other")).id, slot)


async def test_a_run_lies_in_the_day_of_its_creation(owner):
    job = await a_job(owner)

    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(
            "insert into jobs_internal.job_execution"
            " (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door)"
            " values (gen_random_uuid(), $1, 1, '2026-01-02', '2026-01-02 23:30-04', 'caller', 'x', 'psql')",
            job.id,
        )


@pytest.mark.parametrize("parent", ["job_execution", "step_execution"])
async def test_a_parent_ends_after_its_children(owner, run, parent):
    with pytest.raises(asyncpg.PostgresError) as caught:
        await move(owner, parent, run, "Failed")
    assert caught.value.sqlstate == "MU013"

    async with owner.transaction():
        for table in ("job_execution", "step_execution", "target_execution", "task"):
            await move(owner, table, run, "Canceled")


async def test_a_step_belongs_to_a_run_that_is_not_over(owner):
    job = await a_job(owner, steps=2)
    over = await a_run(owner, job)
    await owner.execute("select jobs.sp_stop_job($1)", over)

    for run in (over, uuid4()):
        with pytest.raises(asyncpg.PostgresError) as caught:
            await owner.execute(
                "insert into jobs_internal.step_execution"
                " (run_day, job_execution_id, step_id, step_name, content_hash)"
                " values ((now() at time zone 'UTC')::date, $1, 1, 'step1', '')",
                run,
            )
        assert caught.value.sqlstate == "MU013"


async def test_a_step_stands_once_in_a_run(owner):
    run = await a_run(owner, await a_job(owner))
    await a_step(owner, run)

    with pytest.raises(asyncpg.UniqueViolationError):
        await a_step(owner, run)
