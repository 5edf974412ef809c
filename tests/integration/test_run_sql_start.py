"""A host says what it could send at once: one task that is so starts in the statement that takes it."""

from typing import Any

import asyncpg
import pytest

from tests.support.executions import EPOCH
from tests.support.execution_fixture import Q

pytestmark = pytest.mark.deep

LOGIN = """
with made as (
    insert into jobs_internal.credential (name, username, secret, created_by, modified_by)
    values ('login', 'u', 'env:X', 'test', 'test')
)
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, job_credential, revision)
values ('/servers/1', 's1', '{h}', 5432, 'disable', 'login', 7), ('/servers/2', 's2', '{h}', 5432, 'disable', 'login', 7)
"""


@pytest.fixture
async def task_row(execution, owner) -> asyncpg.Record:
    """The task of the first target, as it is taken."""
    await owner.execute(LOGIN)
    await execution.reserve(1)
    (row,) = await execution.ask("take", execution.host, 0)
    return row


def as_expected(row: asyncpg.Record, **but: Any) -> tuple[Any, ...]:
    """What a host says that expects another task like this one, in a session of its own."""
    names = ("job_id", "job_version", "step_id", "server_id", "directory", "database_name")
    like = dict(row) | but
    return *(like[name] for name in (*names, "credential_id", "credential_version")), 7, 180_000


async def test_a_single_task_that_is_as_expected_starts_when_it_is_taken(task_row, execution):
    (row,) = await execution.ask("take_and_start", execution.host, 0, EPOCH, *as_expected(task_row))
    (again,) = await execution.ask(
        "take_and_start", execution.host, 0, EPOCH, *as_expected(task_row)
    )

    assert (row["begun"], row["started"]) == (True, False)
    assert (again["begun"], again["started"]) == (False, True)
    task = await execution.task(1)
    assert (task["lifecycle"], task["backend_pid"]) == ("InProgress", 7)
    assert (
        await execution.ask(
            "take_and_start", execution.host, row["number"], EPOCH, *as_expected(task_row)
        )
        == []
    )


@pytest.mark.parametrize(
    "but",
    [
        {"job_version": 2}, {"step_id": 2}, {"server_id": "/another"}, {"directory": 99},
        {"database_name": "another"}, {"credential_version": 99},
    ],
    ids=lambda but: next(iter(but)),
)  # fmt: skip
async def test_one_that_is_not_as_expected_is_only_taken(task_row, execution, but):
    (row,) = await execution.ask(
        "take_and_start", execution.host, 0, EPOCH, *as_expected(task_row, **but)
    )

    assert (row["begun"], (await execution.task(1))["lifecycle"]) == (False, "Created")


async def test_of_several_none_starts_when_it_is_taken(task_row, execution):
    await execution.reserve(2)

    rows = await execution.ask("take_and_start", execution.host, 0, EPOCH, *as_expected(task_row))

    assert [row["begun"] for row in rows] == [False, False]


async def test_a_stale_epoch_starts_nothing_with_what_is_taken(task_row, execution):
    expected = (execution.host, 0, EPOCH - 1, *as_expected(task_row))
    with pytest.raises(asyncpg.PostgresError) as caught:
        await execution.engine.fetch(Q.take_and_start, *expected)
    assert caught.value.sqlstate == "MU001"
    assert (await execution.task(1))["lifecycle"] == "Created"
