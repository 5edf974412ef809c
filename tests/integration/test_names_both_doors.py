"""One rule for the names of jobs, steps, groups and credentials, whichever door they come through."""

from urllib.parse import quote

import asyncpg
import pytest

from tests.support.jobs_fixture import SQL, a_step, start_jobs_api
from workflows.validation import common

pytestmark = pytest.mark.newest

NAMES = {
    "plain": True, "with space": True, "a'b": True, "$$": True, "x" * 128: True, "a.b": True, "-1": True,
    "(select 1)": True, "null": True, "#1": True,
    "x" * 129: False, " leading": False, "trailing ": False, "dot.": False, "CON": False, "lpt1": False,
    "a/b": False, "a\\b": False, "a?b": False, "a<b": False, "a>b": False, "a*b": False, "a%b": False, "a&b": False,
    "a:b": False, 'a"b': False, "ü": False, "漢字": False, "🦊": False, "a\u202eb": False, "a\u200bb": False,
    "a\tb": False, "a\nb": False, "a\n": False, "a\x7fb": False, "раypal": False,
}  # fmt: skip
CALLS = {
    "job": ("jobs.sp_add_job(job_name => $1)", "jobs/{}", {}),
    "group": (
        "jobs.sp_add_target_group(target_group_name => $1)",
        "targetGroups/{}",
        {"properties": {"members": []}},
    ),
    "credential": (
        "jobs.sp_add_credential(credential_name => $1, identity => 'u', secret => 'env:A')",
        "credentials/{}",
        {"properties": {"username": "u", "password": "p"}},
    ),
    "step": (
        "jobs.sp_add_jobstep(job_name => 'nightly', step_name => $1, command => 'select 1',"
        " credential_name => 'login', target_group_name => 'fleet')",
        "jobs/other/steps/{}",
        None,
    ),
}


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        await made.a_job("other")
        await made.a_job("nightly")
        yield made


@pytest.mark.parametrize("kind", CALLS)
async def test_both_doors_take_and_refuse_the_same_names(jobs_api, kind):
    call, path, body = CALLS[kind]
    role = jobs_api.targets.administrator
    connection = await asyncpg.connect(jobs_api.targets.url(jobs_api.names[0], role))
    taken: dict[str, tuple[bool, bool]] = {}
    try:
        for name in NAMES:
            url = jobs_api.url(path.format(quote(name, safe="")))
            answer = await jobs_api.call.put(
                url, params=SQL, json=a_step() if body is None else body
            )
            assert answer.status_code in {200, 201, 400}, (name, answer.text)
            if answer.status_code == 201 and kind != "step":
                await jobs_api.call.delete(url, params=SQL)
            try:
                await connection.fetch(f"select * from {call}", name)
                by_psql = True
            except asyncpg.PostgresError as refused:
                assert refused.sqlstate == "MU012", (name, refused)
                by_psql = False
            taken[name] = (answer.status_code == 201, by_psql)
    finally:
        await connection.close()

    assert taken == {name: (good, good) for name, good in NAMES.items()}


def test_the_rule_of_rest_is_that_of_the_table():
    assert {name: common.generic(name) is None for name in NAMES} == NAMES
