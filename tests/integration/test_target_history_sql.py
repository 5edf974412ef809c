"""All that ran on a database, read page by page from the partitions that hold it."""

import json

import pytest

from tests.support.executions import a_job, a_run, end, some_targets

pytestmark = pytest.mark.newest

LIST = (
    "select jobs_internal.list_items('targets', '{}', $1::text::jsonb, $2, $3::text::jsonb)::text"
)


async def pages(owner, size, **filters):
    """The run and database of each item, page by page."""
    after, found = None, []
    while True:
        text = await owner.fetchval(LIST, after and json.dumps(after), size, json.dumps(filters))
        page = json.loads(text)
        found.append([item["path"][1] for item in page["items"]])
        if (after := page["next"]) is None:
            return found


async def test_the_history_of_a_database_has_each_run_once_newest_first(owner):
    job, other = await a_job(owner), await a_job(owner, "other")
    runs = [await a_run(owner, each) for each in (job, other, job)]
    for run, of_job in zip(runs, (job, other, job), strict=True):
        await some_targets(owner, of_job, run, 3)
    await owner.execute(
        "insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision)"
        " values ('/servers/2', 's2', '{db.example.org}', 5432, 'disable', 1)"
    )
    newest = [str(run) for run in reversed(runs)]

    assert await pages(owner, 2, server="s2", database="db2") == [newest[:2], newest[2:]]
    assert await pages(owner, 9, server="DB.example.org", database="db2") == [newest]
    assert await pages(owner, 9, server="S2.database.windows.net", database="db2") == [newest]
    assert await pages(owner, 9, server="s2", database="db1") == [[]]
    assert await pages(owner, 9, server="s2", database="db2", schema="other") == [[]]
    for run in runs:
        await end(owner, run)
    await owner.execute("select jobs.sp_delete_job('nightly')")
    assert await pages(owner, 9, server="s2", database="db2") == [[str(runs[1])]]
    assert await pages(owner, 9, server="s2", database="db2", includeDeleted=True) == [newest]


async def test_a_page_does_not_read_the_targets_of_other_databases(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 5_000)

    async def blocks() -> int:
        plan = await owner.fetchval(
            "explain (analyze, buffers, format json) " + LIST,
            None, 100, json.dumps({"server": "s7", "database": "db7"}),
        )  # fmt: skip
        top = json.loads(plan)[0]["Plan"]
        return top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    for statistics in ("never", "analyzed"):
        if statistics == "analyzed":
            await owner.execute(
                "analyze jobs_internal.snapshot_target; analyze jobs_internal.target_execution"
            )
        await blocks()  # the first one fills the caches of the catalogue
        assert await blocks() < 100, (statistics, await blocks())
