"""What is told about large executions reads each of their targets once, whatever the statistics say."""

import json

import pytest

from tests.support.control_db import installed
from tests.support.executions import a_job, a_run, a_session, end, some_targets

pytestmark = pytest.mark.newest

READ = "select jobs_internal.read_execution_v1($1, $2, $3::text::jsonb)::text"
PAGES = "select sum(pg_relation_size(c.oid)) / 8192 from pg_class c where c.relname = any($1)"


async def test_a_summary_is_one_pass_over_the_targets(owner):
    other, job = await a_job(owner, "other"), await a_job(owner)
    await some_targets(owner, other, await a_run(owner, other), 20_000)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 20_000)
    day = await owner.fetchval("select max(run_day) from jobs_internal.job_execution")
    tables = [f"target_execution_{day:%Y%m%d}", "snapshot_target"]
    tables += [f"{name}_pkey" for name in tables]

    async def blocks() -> int:
        plan = await owner.fetchval(
            "explain (analyze, buffers, format json) " + READ,
            "summary",
            ["nightly", str(run)],
            "{}",
        )
        top = json.loads(plan)[0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    for statistics in ("never", "analyzed"):
        if statistics == "analyzed":
            await owner.execute("analyze jobs_internal.target_execution")
            await owner.execute("analyze jobs_internal.snapshot_target")
        await blocks()  # the first one fills the caches of the catalogue
        assert await blocks() < await owner.fetchval(PAGES, tables), statistics


async def test_the_tag_stays_while_only_time_goes_by(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 3)

    async def told():
        return json.loads(await owner.fetchval(READ, "summary", ["nightly", str(run)], "{}"))

    first = (await told())["answer"]["etag"]
    await owner.execute(
        "update jobs_internal.job_execution set priority = 1 where job_execution_id = $1", run
    )
    assert (await told())["answer"]["etag"] == first
    await end(owner, run)
    over = await told()
    assert over["answer"]["etag"] != first
    assert over["answer"]["summary"]["counts"] == {"Succeeded": 3}
