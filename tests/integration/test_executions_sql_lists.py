"""Executions as REST reads them: items by path, pages newest first, every filter."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from tests.support.executions import (
    a_job,
    a_run,
    a_step,
    end,
    some_targets,
)

GET = "select jobs_internal.get_execution($1, $2)::text"
LIST = "select jobs_internal.list_executions($1, $2, $3::text::jsonb, $4, $5::text::jsonb)::text"
RUN = """
insert into jobs_internal.job_execution
    (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door, lifecycle, end_time)
select gen_random_uuid(), $1, 1, ($2::timestamptz at time zone 'UTC')::date, $2, 'caller', 'x', 'psql',
       case when $3 then 'Created' else 'Failed' end, case when not $3 then $2 + interval '1 hour' end
returning job_execution_id::text
"""
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def get(owner, kind, *path):
    return json.loads(await owner.fetchval(GET, kind, [str(name) for name in path]))


async def page(owner, kind, *path, after=None, top=100, **filters):
    found = await owner.fetchval(
        LIST, kind, [str(name) for name in path],
        None if after is None else json.dumps(after), top, json.dumps(filters),
    )  # fmt: skip
    return json.loads(found)


async def every(owner, kind, *path, top=2, **filters) -> list[list[str]]:
    """All pages: the names in each."""
    pages, after = [], None
    while True:
        found = await page(owner, kind, *path, after=after, top=top, **filters)
        pages.append([item["name"] for item in found["items"]])
        if found["next"] is None:
            return pages
        after = found["next"]


async def names(owner, kind, *path, **filters) -> list[str]:
    return [name for each in await every(owner, kind, *path, **filters) for name in each]


async def not_there(owner, ask):
    with pytest.raises(asyncpg.PostgresError) as caught:
        await ask
    assert caught.value.sqlstate == "MU010"


async def test_a_run_shows_what_applies_to_it(owner):
    run = await a_run(owner, await a_job(owner, "Nightly"))

    item = await get(owner, "jobs/executions", "nightly", str(run).upper())

    properties = item.pop("properties")
    assert item == {
        "name": str(run),
        "uid": str(run),
        "path": ["Nightly", str(run)],
        "rowVersion": None,
        "createdBy": "postgres",
        "modifiedBy": "postgres",
        "createdAt": properties["createTime"],
        "modifiedAt": properties["createTime"],
    }
    assert datetime.fromisoformat(properties.pop("createTime")).tzinfo == UTC
    assert properties == {
        "jobVersion": 1,
        "jobExecutionId": str(run),
        "lifecycle": "Created",
        "provisioningState": "Created",
        "startTime": None,
        "endTime": None,
        "currentAttempts": 0,
        "lastMessage": "Job execution created.",
        "waitReason": None,
        "endReason": None,
        "origin": "caller",
        "slot": None,
        "actor": "postgres",
        "door": "psql",
        "rerunOf": None,
        "planOf": None,
        "limit": None,
        "overrides": None,
        "nextAttemptTime": None,
        "runAttempts": None,
        "targets": None,
        "rowsAffected": None,
    }


async def test_steps_and_targets_are_found_by_name_and_id(owner):
    job = await a_job(owner, "Nightly", steps=2)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 3, step_id=2)
    targets = await page(owner, "jobs/executions/targets", "nightly", run)
    target = targets["items"][0]

    step = await get(owner, "jobs/executions/steps", "nightly", run, "STEP2")
    same = await get(
        owner, "jobs/executions/steps/targets", "nightly", run, "step2", target["name"]
    )

    assert step["path"] == ["Nightly", str(run), "step2"]
    assert (step["properties"]["stepId"], step["properties"]["stepName"]) == (2, "step2")
    assert same == target
    assert same["path"] == ["Nightly", str(run), "step2", same["properties"]["targetId"]]
    assert same["properties"]["target"] == {
        "type": "SqlDatabase",
        "serverName": "s3",
        "databaseName": "db3",
    }
    assert same["properties"]["currentAttempts"] == 0


@pytest.mark.parametrize(
    ("lifecycle", "state"),
    [
        ("Created", "Created"),
        ("InProgress", "InProgress"),
        ("WaitingForChildJobExecutions", "InProgress"),
        ("WaitingForRetry", "InProgress"),
        ("Succeeded", "Succeeded"),
        ("SucceededWithSkipped", "Succeeded"),
        ("Skipped", "Succeeded"),
        ("Failed", "Failed"),
        ("TimedOut", "Failed"),
        ("Canceled", "Canceled"),
    ],
)
async def test_a_lifecycle_has_one_provisioning_state(owner, lifecycle, state):
    run = await a_run(owner, await a_job(owner))
    over = state in {"Succeeded", "Failed", "Canceled"}
    change = "update jobs_internal.job_execution set lifecycle = $1, end_time = case when $2 then now() end"
    if lifecycle != "Created":
        await owner.execute(change, "InProgress", False)
    await owner.execute(change, lifecycle, over)

    item = await get(owner, "jobs/executions", "nightly", run)

    assert item["properties"]["provisioningState"] == state


async def test_what_is_not_there_is_not_found(owner):
    job = await a_job(owner)
    await a_job(owner, "other")
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 1)

    for path in (("other", run), ("nightly", uuid4()), ("nightly", "x"), ("never", run)):
        await not_there(owner, get(owner, "jobs/executions", *path))
        await not_there(owner, page(owner, "jobs/executions/steps", *path))
        await not_there(owner, page(owner, "jobs/executions/targets", *path))
    await not_there(owner, get(owner, "jobs/executions/steps", "nightly", run, "step9"))
    await not_there(owner, page(owner, "jobs/executions/steps/targets", "nightly", run, "step9"))
    for target in (uuid4(), "x"):
        await not_there(
            owner, get(owner, "jobs/executions/steps/targets", "nightly", run, "step1", target)
        )
    await not_there(owner, page(owner, "jobs/executions", "never"))


async def test_runs_are_paged_newest_first_even_within_one_instant(owner):
    job, other = await a_job(owner), await a_job(owner, "other")
    made = [await owner.fetchval(RUN, job.id, NOON, False) for _ in range(5)]
    newest = await owner.fetchval(RUN, other.id, NOON + timedelta(hours=1), True)

    assert await every(owner, "executions") == [
        [newest, max(made)],
        sorted(made, reverse=True)[1:3],
        sorted(made, reverse=True)[3:],
    ]
    assert await names(owner, "jobs/executions", "NIGHTLY") == sorted(made, reverse=True)
    assert await names(owner, "jobs/executions", "other") == [newest]


@pytest.mark.parametrize("path", [("executions",), ("jobs/executions", "nightly")])
async def test_filters_of_runs(owner, path):
    job = await a_job(owner)
    made = [await owner.fetchval(RUN, job.id, NOON + timedelta(hours=n), n == 3) for n in range(4)][
        ::-1
    ]

    def at(hours):
        return (NOON + timedelta(hours=hours)).isoformat()

    for filters, expected in [
        ({}, made),
        ({"createTimeMin": at(1)}, made[:3]),
        ({"createTimeMax": at(1)}, made[3:]),
        ({"endTimeMin": at(2)}, made[1:3]),
        ({"endTimeMax": at(2)}, made[3:]),
        ({"isActive": True}, made[:1]),
        ({"isActive": False}, made[1:]),
        ({"skip": 3}, made[3:]),
        ({"skip": 1, "isActive": False}, made[2:]),
        ({"skip": 9}, []),
        ({"createTimeMin": at(1), "createTimeMax": at(3), "endTimeMin": at(3)}, made[1:2]),
    ]:
        assert await names(owner, *path, **filters) == expected, filters


async def test_a_deleted_job_is_hidden_unless_asked_for_and_its_name_begins_anew(owner):
    old = await a_job(owner)
    before = await a_run(owner, old)
    await some_targets(owner, old, before, 1)
    await end(owner, before)
    await owner.execute("update jobs_internal.job set deleted_at = now()")

    assert await names(owner, "executions") == []
    await not_there(owner, page(owner, "jobs/executions", "nightly"))
    await not_there(owner, get(owner, "jobs/executions", "nightly", before))
    await not_there(owner, page(owner, "jobs/executions/targets", "nightly", before))
    assert await names(owner, "executions", includeDeleted=True) == [str(before)]

    after = await a_run(owner, await a_job(owner))
    assert await names(owner, "jobs/executions", "nightly") == [str(after)]
    assert await names(owner, "jobs/executions", "nightly", includeDeleted=True) == [
        str(after),
        str(before),
    ]
    steps = await names(owner, "jobs/executions/steps", "nightly", before, includeDeleted=True)
    assert steps == ["step1"]


async def test_steps_are_paged_last_step_first(owner):
    run = await a_run(owner, await a_job(owner, steps=3))
    for step in (1, 2, 3):
        await a_step(owner, run, step)
    await owner.execute(
        "update jobs_internal.step_execution set lifecycle = 'Failed', end_time = now()"
        " where step_id < 3"
    )

    path = ("jobs/executions/steps", "nightly", run)
    assert await every(owner, *path) == [["step3", "step2"], ["step1"]]
    assert await names(owner, *path, isActive=True) == ["step3"]
    assert await names(owner, *path, isActive=False, skip=1) == ["step1"]


async def test_targets_are_paged_over_the_steps_and_within_one(owner):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    for step in (1, 2):
        await some_targets(owner, job, run, 3, step_id=step)

    def shown(found):
        return [
            (item["properties"]["stepId"], item["properties"]["target"]["databaseName"])
            for item in found["items"]
        ]

    path = ("jobs/executions/targets", "nightly", run)
    first = await page(owner, *path, top=4)
    rest = await page(owner, *path, top=4, after=first["next"])

    assert shown(first) == [(2, "db3"), (2, "db2"), (2, "db1"), (1, "db3")]
    assert shown(rest) == [(1, "db2"), (1, "db1")]
    assert rest["next"] is None
    assert shown(await page(owner, *path, skip=4)) == shown(rest)
    one = ("jobs/executions/steps/targets", "nightly", run, "step1")
    assert shown(await page(owner, *one, top=2)) == [(1, "db3"), (1, "db2")]
    assert [len(names) for names in await every(owner, *one)] == [2, 1]


async def test_filters_of_targets(owner):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 4, step_id=1)
    await some_targets(owner, job, run, 1, step_id=2)
    await owner.execute(
        "update jobs_internal.target_execution set lifecycle = 'Failed',"
        " end_time = $1::timestamptz + ordinal * interval '1 hour' where step_id = 1 and ordinal < 4",
        NOON,
    )

    path = ("jobs/executions/targets", "nightly", run)
    for filters, expected in [
        ({}, 5),
        ({"isActive": True}, 2),
        ({"isActive": False}, 3),
        ({"endTimeMin": (NOON + timedelta(hours=2)).isoformat()}, 2),
        ({"endTimeMax": (NOON + timedelta(hours=2)).isoformat()}, 1),
        ({"createTimeMax": NOON.isoformat()}, 0),
        ({"createTimeMin": NOON.isoformat(), "skip": 4}, 1),
    ]:
        assert len(await names(owner, *path, **filters)) == expected, filters


@pytest.mark.newest
async def test_a_page_of_a_large_step_reads_little_wherever_it_is(owner):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 1)
    await end(owner, run)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 20_000)
    day = await owner.fetchval("select max(run_day) from jobs_internal.job_execution")
    middle = {"stepId": 1, "ordinal": 10_000}

    async def blocks(kind, path, after=None, **filters) -> int:
        plan = await owner.fetchval(
            "explain (analyze, buffers, format json) " + LIST, kind, [str(name) for name in path],
            None if after is None else json.dumps(after), 10, json.dumps(filters),
        )  # fmt: skip
        top = json.loads(plan)[0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    table = await owner.fetchval(
        f"select pg_relation_size('jobs_internal.target_execution_{day:%Y%m%d}') / 8192"
    )
    assert table > 300
    for statistics in ("never", "analyzed"):
        if statistics == "analyzed":
            await owner.execute("analyze jobs_internal.target_execution")
        for kind, path in [
            ("jobs/executions/targets", ("nightly", run)),
            ("jobs/executions/steps/targets", ("nightly", run, "step1")),
        ]:
            await blocks(kind, path)  # the first one fills the caches of the catalogue
            assert await blocks(kind, path) < 150
            assert await blocks(kind, path, middle) < 150
            assert await blocks(kind, path, middle, isActive=True) < 150
            assert await blocks(kind, path, createTimeMax=NOON.isoformat()) < table * 2
    await end(owner, run)
    assert await blocks("jobs/executions/targets", ("nightly", run), isActive=True) < 150
