"""One rule for verify queries, whether a step is written by REST or by SQL."""

import json

import asyncpg
import pytest

from tests.support.jobs_fixture import a_step, start_jobs_api
from tests.support.verify_queries import QUERIES

pytestmark = pytest.mark.newest

CALL = "select jobs.sp_update_jobstep(job_name => 'nightly', step_name => 'first', options => $1)"


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        await made.a_job()
        yield made


async def test_both_doors_take_and_refuse_the_same_verify_queries(jobs_api):
    connection = await asyncpg.connect(
        jobs_api.targets.url(jobs_api.names[0], jobs_api.targets.administrator)
    )
    taken: dict[str, tuple[bool, bool]] = {}
    try:
        for sql in QUERIES:
            verify = {"sql": sql, "expect": "nonEmpty"}
            answer = await jobs_api.put("jobs/nightly/steps/first", a_step(verify=verify))
            if answer.status_code == 400:
                assert answer.json()["error"]["target"] == "properties.verify.sql", answer.text
            try:
                await connection.execute(CALL, json.dumps({"verify": verify}))
                by_psql = True
            except asyncpg.PostgresError as refused:
                assert (refused.sqlstate, refused.column_name) == ("MU012", "options"), sql
                by_psql = False
            taken[sql] = (answer.status_code == 200, by_psql)
    finally:
        await connection.close()

    assert taken == {sql: (good, good) for sql, good in QUERIES.items()}
