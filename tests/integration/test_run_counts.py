"""What lists show of runs and jobs: targets that succeeded, rows affected, the last run; and that it costs no scan."""

import json

import pytest

from tests.support.executions import EPOCH, a_job, a_run, a_snapshot, end, some_targets
from tests.support.fleet import Fleet, start_fleet

pytestmark = pytest.mark.newest

LIST = "select jobs_internal.list_items($1, $2, null, 100, '{}')::text"
HISTORY = """
insert into jobs_internal.job_execution
    (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door, lifecycle, end_time)
select gen_random_uuid(), $1, 1, (t.at at time zone 'UTC')::date, t.at, 'caller', 'x', 'psql', 'Succeeded', t.at
  from (select clock_timestamp() - interval '1 s' * n as at from generate_series(1, $2) n) t
"""


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, account=account) as made:
        yield made


async def shown(session, run):
    item = await session.fetchval(
        "select jobs_internal.run_item(x)::text from jobs_internal.job_execution x where job_execution_id = $1",
        run,
    )
    return json.loads(item)["properties"]


@pytest.mark.targets
async def test_a_run_counts_its_targets_and_the_rows_that_it_changed(fleet: Fleet):
    await fleet.run("create table t (n int)")
    run = await fleet.run(
        "insert into t values (1), (2); update t set n = n + 1", "delete from t where n = 2"
    )
    properties = await shown(fleet.root, run)
    assert properties["targets"] == {"total": 3, "done": 3, "succeeded": 3, "failed": 0}, (
        "each once"
    )
    assert properties["rowsAffected"] == 3 * (2 + 2 + 1)
    assert [row["rows_affected"] for row in await fleet.steps(run)] == [12, 3]

    assert (await shown(fleet.root, await fleet.run("select n from t")))["rowsAffected"] is None
    await fleet.query(0, "drop table t")
    failed = await shown(fleet.root, await fleet.run("delete from t"))
    assert failed["targets"] == {"total": 3, "done": 3, "succeeded": 2, "failed": 1}
    assert failed["rowsAffected"] == 2, "of the targets that succeeded"


@pytest.mark.targets
async def test_a_target_that_failed_in_any_step_has_not_succeeded(fleet: Fleet):
    for number in range(3):
        await fleet.query(number, "create table t (n int)")
    await fleet.query(0, "create table once ()")
    options = {"options": {"onFailure": "continue"}}

    run = await fleet.run("create table once ()", "insert into t values (1)", **options)

    properties = await shown(fleet.root, run)
    assert properties["targets"] == {"total": 3, "done": 3, "succeeded": 2, "failed": 1}
    assert properties["rowsAffected"] == 3


async def test_a_live_run_counts_what_is_done_so_far_and_a_large_one_its_total(owner):
    job = await a_job(owner)
    for number, expected in (
        (3, {"total": 3, "done": 0, "succeeded": 0, "failed": 0}),
        (10_001, {"total": 10_001}),
    ):
        run = await a_run(owner, job)
        assert (await shown(owner, run))["targets"] is None, "nothing is known before it begins"
        await some_targets(owner, job, run, number)
        await owner.execute("update jobs_internal.job_execution set lifecycle = 'InProgress', start_time = clock_timestamp()"
                            " where job_execution_id = $1", run)  # fmt: skip
        assert (await shown(owner, run))["targets"] == expected
        await end(owner, run)


async def test_a_live_run_is_counted_by_the_sum_of_its_steps(owner):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 5_000)
    await owner.execute("update jobs_internal.job_execution set lifecycle = 'InProgress', start_time = clock_timestamp()"
                        " where job_execution_id = $1", run)  # fmt: skip
    assert "done" in (await shown(owner, run))["targets"]
    await some_targets(owner, job, run, 5_001, step_id=2)
    assert (await shown(owner, run))["targets"] == {"total": 5_001}


@pytest.mark.parametrize("statistics", ["never", "analyzed"])
async def test_the_targets_of_one_run_are_counted_without_reading_those_of_others(
    owner, statistics
):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    for step_id in (1, 2):
        await some_targets(owner, job, run, 10, step_id=step_id)

    async def blocks() -> int:
        plan = await owner.fetchval(
            "explain (analyze, buffers, format json) select jobs_internal.count_targets(x)"
            " from jobs_internal.job_execution x where job_execution_id = $1", run)  # fmt: skip
        top = json.loads(plan)[0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    await blocks()  # the first one fills the caches of the catalogue
    before = await blocks()
    for _ in range(20):
        await a_snapshot(owner, job.group, 2_000)
    if statistics == "analyzed":
        await owner.execute("analyze jobs_internal.snapshot_target")
    await blocks()
    assert await blocks() < before + 50, "of 40000 targets of other runs, a few more blocks"


async def test_more_rows_than_a_number_holds_are_the_most_that_it_holds(owner):
    most, job = 2**63 - 1, await a_job(owner, steps=2)
    run = await a_run(owner, job)
    for step_id in (1, 2):
        await some_targets(owner, job, run, 2, step_id=step_id)
        for lifecycle in ("InProgress", "Succeeded"):
            await owner.execute(
                "update jobs_internal.target_execution set lifecycle = $3, rows_affected = $4,"
                " end_time = case when $3 = 'Succeeded' then clock_timestamp() end"
                " where (job_execution_id, step_id) = ($1, $2)", run, step_id, lifecycle, most)  # fmt: skip
        ended = await owner.fetchval(
            "select jobs_internal.end_step($1, $2, $3)", EPOCH, run, step_id
        )
        assert ended == "Succeeded"

    await owner.execute(
        "update jobs_internal.job_execution set lifecycle = 'InProgress' where job_execution_id = $1",
        run,
    )
    assert await owner.fetchval("select jobs_internal.end_run($1, $2)", EPOCH, run) == "Succeeded"
    assert (await shown(owner, run))["rowsAffected"] == most
    steps = await owner.fetch("select rows_affected from jobs_internal.step_execution")
    assert [row["rows_affected"] for row in steps] == [most, most]


async def test_the_last_run_of_each_job_is_found_by_index(owner):
    jobs = [await a_job(owner, f"job{number}") for number in range(20)]

    async def listed():
        items = json.loads(await owner.fetchval(LIST, "jobs", []))["items"]
        return {item["name"]: item["properties"].get("lastRun") for item in items}

    async def blocks() -> int:
        plan = await owner.fetchval("explain (analyze, buffers, format json) " + LIST, "jobs", [])
        top = json.loads(plan)[0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    assert set((await listed()).values()) == {None}
    for job in jobs:
        await owner.execute(HISTORY, job.id, 1)
    await blocks()  # the first one fills the caches of the catalogue
    before = await blocks()
    for job in jobs:
        await owner.execute(HISTORY, job.id, 5_000)
    runs = {job.name: await a_run(owner, job) for job in jobs}
    for statistics in ("never", "analyzed"):
        if statistics == "analyzed":
            await owner.execute("analyze jobs_internal.job_execution")
        await blocks()
        assert await blocks() < before + 20 * 10, "100000 runs: a few more blocks per job"
    assert {name: last["jobExecutionId"] for name, last in (await listed()).items()} == {
        name: str(run) for name, run in runs.items()
    }


async def test_runs_are_filtered_by_how_they_ended(owner):
    job = await a_job(owner)
    for lifecycle in ("Succeeded", "Failed", "TimedOut"):
        run = await a_run(owner, job)
        await some_targets(owner, job, run, 1)
        await end(owner, run, lifecycle)
    live = await a_run(owner, job)

    async def lifecycles(kind, path, *wanted):
        filters = json.dumps({"lifecycle": wanted})
        page = await owner.fetchval(
            "select jobs_internal.list_executions($1, $2, null, 10, $3::text::jsonb)::text",
            kind,
            path,
            filters,
        )
        return [item["properties"]["lifecycle"] for item in json.loads(page)["items"]]

    for kind, path in (("executions", []), ("jobs/executions", ["nightly"])):
        assert await lifecycles(kind, path, "Failed", "TimedOut") == ["TimedOut", "Failed"]
        assert await lifecycles(kind, path, "Created") == ["Created"]
    assert live
