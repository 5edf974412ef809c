"""Which transactions of a control database exclude each other by its lock functions."""

import asyncio
import contextlib

import asyncpg
import pytest

from tests.support.control_db import a_control_database, agent_beside

DISPATCH = "select jobs_internal.lock_dispatch()"
REPORTS = "select jobs_internal.lock_reports()"
REPORT = "lock table jobs_internal.report_lock in row share mode"
NAME = "select jobs_internal.lock_name('job', 'Nightly')"
SAME_NAME = "select jobs_internal.lock_name('job', 'nightly')"
OTHER_NAME = "select jobs_internal.lock_name('job', 'other')"


@pytest.fixture
async def account(settings, db, control):
    async with agent_beside(settings, db) as agent:
        account = await a_control_database(control)
        await agent.install(account)
        yield account


@contextlib.asynccontextmanager
async def two_sessions(account):
    sessions = [await account.connect("root") for _ in range(2)]
    try:
        yield sessions
    finally:
        for each in sessions:
            await each.close()


@pytest.mark.parametrize(
    ("first", "second", "excluded"),
    [
        (DISPATCH, DISPATCH, True),
        (DISPATCH, REPORTS, False),
        (REPORTS, REPORTS, True),
        (REPORTS, REPORT, True),
        (REPORT, REPORTS, True),
        (REPORT, REPORT, False),
        (NAME, SAME_NAME, True),
        (NAME, OTHER_NAME, False),
    ],
)
@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_lock_is_held_until_its_transaction_ends(account, first, second, excluded, end):
    async with two_sessions(account) as (holder, other):
        await other.execute("set lock_timeout = '200ms'")
        await holder.execute(f"begin; {first}")
        if excluded:
            with pytest.raises(asyncpg.LockNotAvailableError):
                await other.execute(f"begin; {second}")
            await other.execute("rollback; set lock_timeout = '20s'")
            waiting = asyncio.create_task(other.execute(f"begin; {second}; commit"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await holder.execute(end)
            await waiting
        else:
            await other.execute(f"begin; {second}; commit")

    assert await account.fetch("select from jobs_internal.name_lock") == []
