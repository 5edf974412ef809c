"""What is told about large executions reads each of their targets once, whatever the statistics say."""

import json

import pytest

from tests.support.executions import a_job, a_run, end, some_targets

pytestmark = pytest.mark.newest

READ = "select jobs_internal.read_execution($1, $2, $3::text::jsonb)::text"
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


async def test_a_page_of_messages_ends_though_hardly_anybody_spoke(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 20_002)
    await owner.execute(
        "insert into jobs_internal.task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch,"
        "                                host_id, lifecycle, start_time, end_time, notices)"
        " select run_day, job_execution_id, step_id, ordinal, 1, gen_random_uuid(), 1, gen_random_uuid(), 'Succeeded',"
        "        now(), now(), case when ordinal in (2, 20002) then '[{\"message\": \"here\"}]'::jsonb else '[]' end"
        "   from jobs_internal.target_execution where job_execution_id = $1",
        run,
    )

    async def page(after: dict | None) -> dict:
        options = json.dumps({"after": after})
        told = await owner.fetchval(READ, "messages", ["nightly", str(run)], options)
        return json.loads(told)["answer"]

    first = await page(None)
    second = await page(first["next"])

    assert first["next"] == {"stepId": 1, "ordinal": 20_001}
    assert (len(first["items"]), len(second["items"]), second["next"]) == (1, 1, None)
