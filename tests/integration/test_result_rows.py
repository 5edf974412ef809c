"""Result sets as files: what targets returned, joined over an execution and of one attempt."""

import csv
import io
import json
import os
import time
from pathlib import Path

import httpx
import pytest

from muster.core.ids import ResourceId
from tests.support import arm
from tests.support.executions import a_job, some_targets
from tests.support.jobs_fixture import SQL, start_jobs_api
from tests.support.outcomes import a_planned_run, a_set, an_engine, ran
from tests.support.plane import a_call
from tests.support.running_api import served
from workflows import result_rows

pytestmark = [pytest.mark.newest]


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


@pytest.fixture
async def owner(jobs_api):
    async with an_engine(jobs_api) as session:
        yield session


@pytest.fixture
async def job(owner):
    return await a_job(owner, "nightly", steps=2)


def at(run, *more):
    return "/".join(["jobs/nightly/executions", str(run), *map(str, more)])


async def a_while_ago(owner, run):
    """A file of a step that runs has no target that ended within the last moments."""
    await owner.execute(
        "update jobs_internal.target_execution set end_time = end_time - interval '1 minute'"
        " where job_execution_id = $1",
        run,
    )


async def attempts_of(owner, run, ordinal):
    target = await owner.fetchval(
        "select d.target_id from jobs_internal.snapshot_target d"
        "  join jobs_internal.step_execution s using (snapshot_id)"
        " where s.job_execution_id = $1 and d.ordinal = $2",
        run,
        ordinal,
    )
    return at(run, "steps/step1/targets", target, "attempts")


def read_csv(answer):
    assert answer.status_code == 200, answer.text
    return list(csv.reader(io.StringIO(answer.text, newline=""), strict=True))


async def test_results_are_read_as_files_and_so_are_tags_and_messages(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 5)
    sent = [{"severity": "NOTICE", "message": f"notice {n}"} for n in range(3)]
    update = {"statement": 1, "tag": "UPDATE 3"}
    await ran(owner, run, 1, "Failed", target="WaitingForRetry", notices=sent[:1])
    await ran(
        owner, run, 1, "Succeeded", attempt=2, notices=sent[1:],
        results=[update, a_set("a b", [1, "x"], [2, None]), a_set("z", ["second"])],
    )  # fmt: skip
    await ran(owner, run, 2, "Failed", results=[a_set("a b", [9, "no"])])
    await ran(owner, run, 3, "Succeeded", results=[a_set("b c b", [3, "", 5], truncated=True)])
    await ran(owner, run, 4, "Succeeded", results=[{"statement": 1, "tag": "CREATE TABLE"}])
    await a_while_ago(owner, run)

    joined = await jobs_api.get(at(run, "results"), format="csv")
    lines = await jobs_api.call.get(
        jobs_api.url(at(run, "results")), params=SQL, headers={"Accept": "application/x-ndjson"}
    )
    tags = (await jobs_api.seen(at(run, "commandTags"), __top="2"))["value"]
    messages = (await jobs_api.seen(at(run, "messages")))["value"]
    first_messages = await jobs_api.seen(at(run, "messages"), __top="1")
    other_messages = (await jobs_api.call.get(first_messages["nextLink"])).json()
    attempt = f"{await attempts_of(owner, run, 1)}/2"
    one_set = await jobs_api.seen(f"{attempt}/results", set="2")
    none = await jobs_api.get(f"{attempt}/results", set="3")

    assert read_csv(joined) == [
        ["target_server", "target_database", "target_schema", "a", "b", "c", "b_2"],
        ["s1", "db1", "", "1", "x", "", ""],
        ["s1", "db1", "", "2", "", "", ""],
        ["s3", "db3", "", "", "3", "", "5"],
    ]
    assert 's3,db3,,,3,"",5\r\n' in joined.text
    assert joined.headers["content-type"].startswith("text/csv")
    assert (joined.headers["muster-targets"], joined.headers["muster-truncated-targets"]) == (
        "2", "1",
    )  # fmt: skip
    where = {"target_server": "s3", "target_database": "db3", "target_schema": None}
    assert [json.loads(line) for line in lines.text.splitlines()][2] == {
        **where, "b": 3, "c": "", "b_2": 5,
    }  # fmt: skip
    assert [(e["databaseName"], [t["tag"] for t in e["commandTags"]]) for e in tags] == [
        ("db1", ["UPDATE 3", "SELECT 2", "SELECT 1"]), ("db3", ["SELECT 1"]),
    ]  # fmt: skip
    assert tags[0]["commandTags"][0] == {"statement": 1, "tag": "UPDATE 3", "rows": 3}
    assert [(e["attempt"], e["notices"]) for e in messages] == [(1, sent[:1]), (2, sent[1:])]
    assert first_messages["value"] + other_messages["value"] == messages
    assert (one_set["set"], one_set["sets"], one_set["rows"]) == (2, 2, [["second"]])
    assert (await jobs_api.get(f"{attempt}/results", set="2", format="csv")).text == (
        "z\r\nsecond\r\n"
    )
    assert (none.status_code, arm.error(none)) == (404, "ResourceNotFound")
    notices = await jobs_api.seen(f"{attempt}/messages", __top="1")
    following = (await jobs_api.call.get(notices["nextLink"])).json()
    assert notices["value"] + following["value"] == sent[1:]
    assert "nextLink" not in following


@pytest.mark.deep
async def test_a_file_is_refused_before_it_begins(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await some_targets(owner, job, run, 1, step_id=2)
    path = at(run, "results")

    for query, code in (
        ({"format": "csv"}, (400, "InvalidParameterValue")),
        ({"format": "xml", "step": "step1"}, (400, "InvalidParameterValue")),
        ({"format": "csv", "step": "step1", "__top": "5"}, (400, "InvalidQueryParameter")),
        ({"format": "ndjson", "step": "no"}, (404, "ResourceNotFound")),
    ):
        answer = await jobs_api.get(path, **query)
        assert (answer.status_code, arm.error(answer)) == code, query
    empty = await jobs_api.get(path, format="csv", step="step1")
    assert empty.text == "target_server,target_database,target_schema\r\n"


@pytest.mark.deep
async def test_a_file_whose_rows_go_away_while_it_is_read_is_broken_off(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 40)
    row = ["x" * 1000]
    for ordinal in range(1, 41):
        await ran(owner, run, ordinal, "Succeeded", results=[a_set("v", *[row] * 500)])
    await a_while_ago(owner, run)

    async with served(jobs_api.app) as url:
        path = f"{url}{jobs_api.url(at(run, 'results'))}"
        headers = {"Authorization": f"Bearer {arm.TOKEN}"}
        query = SQL | {"format": "ndjson"}
        async with (
            httpx.AsyncClient(headers=headers, timeout=30) as client,
            client.stream("GET", path, params=query) as answer,
        ):
            assert answer.status_code == 200
            received = answer.aiter_bytes()
            await anext(received)
            await owner.execute("delete from jobs_internal.task")
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in received:
                    pass


@pytest.mark.deep
async def test_targets_that_succeed_while_a_file_is_read_are_not_in_it(jobs_api, owner, job):
    """A run that goes on: the file is of the moment at which it began."""
    run = await a_planned_run(owner, job, 3)
    await ran(owner, run, 1, "Succeeded", results=[a_set("v", *[["1"]] * 1001)])
    await a_while_ago(owner, run)
    id = ResourceId.parse(jobs_api.url(at(run)))
    rows = await result_rows.of_run(jobs_api.plane, a_call("GET", query={}), id)
    pages = aiter(rows.pages)
    await anext(pages)

    await ran(owner, run, 2, "Succeeded", results=[a_set("other", ["2"])])
    rest = [part.rows for page in [page async for page in pages] for part in page]

    assert [len(each) for each in rest] == [1]


MANY = """
insert into jobs_internal.task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                                lifecycle, start_time, end_time, notices, results)
select run_day, job_execution_id, step_id, ordinal, 1, gen_random_uuid(), 1, gen_random_uuid(), 'Succeeded',
       clock_timestamp(), clock_timestamp(), '[]', jsonb_build_array($2::text::jsonb || jsonb_build_object('rows', (
           select jsonb_agg(jsonb_build_array(n, md5((ordinal * n)::text))) from generate_series(1, $3) n)))
  from jobs_internal.target_execution where job_execution_id = $1
"""
SUCCEEDED = """
update jobs_internal.target_execution
   set lifecycle = 'InProgress', attempts = 1, start_time = clock_timestamp(), attempt_start_time = clock_timestamp()
 where job_execution_id = $1
"""
ENDED = """
update jobs_internal.target_execution
   set lifecycle = 'Succeeded', end_time = clock_timestamp() where job_execution_id = $1
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "ndjson"])
async def test_a_million_rows_of_a_thousand_targets_need_the_memory_of_a_page(
    jobs_api, owner, job, form
):
    """API, node agent and client are this process; it prints how much it grew."""
    run = await a_planned_run(owner, job, 1000)
    description = json.dumps(a_set("n text") | {"rowCount": 1000})
    await owner.execute(MANY, run, description, 1000)
    await owner.execute(SUCCEEDED, run)
    await owner.execute(ENDED, run)
    await a_while_ago(owner, run)
    url, query = jobs_api.url(at(run, "results")), SQL | {"format": form}
    headers = {"Authorization": f"Bearer {arm.TOKEN}"}
    lines = size = most = 0

    async with served(jobs_api.app) as base, httpx.AsyncClient(headers=headers) as client:
        begin = time.monotonic()
        before = resident()
        async with client.stream("GET", base + url, params=query, timeout=60) as answer:
            async for chunk in answer.aiter_bytes():
                lines += chunk.count(b"\n")
                size += len(chunk)
                most = max(most, resident())

    seconds = time.monotonic() - begin
    print(
        f"\n{form}: {lines} lines, {size / 1e6:.1f} MB in {seconds:.1f} s;"
        f" memory {before / 1e6:.0f} MB, at most {most / 1e6:.0f} MB"
    )
    assert lines == 1_000_000 + (form == "csv")
    assert most - before < 50_000_000


def resident() -> int:
    """Bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
