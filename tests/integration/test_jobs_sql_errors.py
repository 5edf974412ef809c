"""What psql prints of an error that a function of schema jobs raises."""

import re

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.definitions import SERVERS, a_definer, some_steps

pytestmark = pytest.mark.newest
FUNCTIONS = """
select p.oid::regprocedure::text, p.prosrc from pg_proc p where p.pronamespace = 'jobs'::regnamespace
"""


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


@pytest.fixture
async def admin(account):
    async with a_definer(account) as made:
        yield made


@pytest.mark.parametrize(
    ("function", "given", "state", "column"),
    [
        ("sp_update_job", {"job_name": "none"}, "MU010", "job_name"),  # raised by a declaration
        ("sp_add_job", {"job_name": "n", "retention_days": 0}, "MU012", "retention_days"),
        ("sp_add_job", {"job_name": "nightly"}, "MU011", "job_name"),  # from a handler
        (
            "sp_add_jobstep",
            {"job_name": "nightly", "step_name": "b", "command": "$(x)"},
            "MU012",
            "command",
        ),
        ("sp_start_job", {"job_name": "none"}, "MU010", "job_name"),  # raised by itself
    ],
)
async def test_an_error_names_no_function_but_the_one_that_was_called(
    admin, function, given, state, column
):
    await some_steps(admin, "a")

    error = await admin.refused(state, function, **given)

    (line,) = error.context.splitlines()
    assert re.match(rf"PL/pgSQL function (jobs\.)?{function}\(", line)
    assert error.column_name == column
    assert error.hint != ""


async def test_advice_and_rest_code_come_along(admin):
    await some_steps(admin, "a")

    error = await admin.refused(
        "MU012", "sp_update_jobstep", job_name="nightly", step_id=1, new_id=7
    )

    assert error.constraint_name == "JobStepIdMismatch"
    step = {"job_name": "nightly", "step_id": 1, "options": {"verify": {"sql": "analyze"}}}
    error = await admin.refused("MU012", "sp_update_jobstep", **step)
    assert error.hint.startswith("A verify query is one statement that only reads")


async def test_every_function_of_schema_jobs_is_installed_so(account):
    rows = await account.fetch(FUNCTIONS)

    assert len(rows) > 20
    assert [
        name for name, source in rows if "get stacked diagnostics raised_state" not in source
    ] == []


async def test_a_mistake_of_muster_keeps_its_context(account, admin):
    await account.execute("alter table jobs_internal.instance rename to gone")

    with pytest.raises(asyncpg.UndefinedTableError) as caught:
        await admin.call("sp_pause")

    assert "set_paused" in caught.value.context
