"""The metadata database as everybody uses it: no superuser, short waits, outages with a name."""

import asyncio

import asyncpg
import pytest

from muster.core.db import open_database
from muster.core.errors import Unavailable


async def test_the_application_is_no_superuser(db):
    assert await db.fetchval("select rolsuper from pg_roles where rolname = current_user") is False


async def test_json_travels_as_python_values(db):
    value = {"a": [1, None, "ü"], "b": {"c": True}}
    assert await db.fetchval("select $1::jsonb", value) == value


async def test_a_transaction_is_all_or_nothing(db):
    with pytest.raises(RuntimeError):
        async with db.transaction() as tx:
            await tx.execute("create table x (y int)")
            raise RuntimeError
    assert await db.fetchval("select to_regclass('x')") is None


async def test_nobody_waits_long_and_nobody_sleeps_in_a_transaction(db):
    row = await db.fetchrow(
        "select current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement,"
        " current_setting('idle_in_transaction_session_timeout') as idle, current_setting('timezone') as zone"
    )
    assert tuple(row) == ("2s", "5s", "5s", "UTC")


async def test_an_ended_session_is_unavailable_and_the_next_one_works(db):
    with pytest.raises(Unavailable) as away:
        await db.execute("select pg_terminate_backend(pg_backend_pid())")
    assert away.value.retry_after == 1

    assert await db.fetchval("select 1") == 1


async def test_a_lock_that_is_held_is_unavailable_soon(db, database_url):
    await db.execute("create table x (y int)")
    holder = await asyncpg.connect(database_url)
    async with holder.transaction():
        await holder.execute("lock table x")
        with pytest.raises(Unavailable):
            async with db.transaction() as tx:
                await tx.execute("set local lock_timeout = '50ms'")
                await tx.fetch("select * from x")
    await holder.close()


async def test_closing_ends_even_when_a_connection_is_in_use(settings):
    database = await open_database(settings, application="muster-test")
    held = asyncio.Event()

    async def hold() -> None:
        async with database.connection():
            held.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await held.wait()
    await asyncio.wait_for(database.close(), 10)
    assert not holder.done(), "close came to its end while the connection was in use"

    holder.cancel()
    await asyncio.wait({holder})
