"""`muster migrate` waits for a metadata database that can't be reached yet."""

import asyncio
import os
import sys
from dataclasses import replace
from urllib.parse import urlsplit

import asyncpg
import pytest

from muster.core.migrate import scripts
from muster.core.settings import Secret
from muster.roles import migrate
from tests.support.fake_clock import FakeClock
from tests.support.refusing import refusing
from tests.support.running_api import free_port
from tests.support.tcp_proxy import proxy_to


@pytest.fixture
async def empty(postgres):
    """The URL of a database without tables."""
    name = await asyncio.to_thread(postgres.create_database, "template0")
    yield postgres.url(name)
    await asyncio.to_thread(postgres.drop_database, name)


def through(url, port):
    """The same database behind another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()


async def test_a_database_that_comes_later_is_waited_for(empty):
    async with proxy_to(urlsplit(empty).port) as proxy:
        proxy.cut()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "muster", "migrate"),
            env={**os.environ, "MUSTER_DATABASE_URL": through(empty, proxy.port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(60):  # for its first line
                line = (await process.stderr.readline()).decode()
            assert line.startswith("muster migrate: waits up to 300 s for the metadata database: ")
            proxy.restore()
            async with asyncio.timeout(60):  # for its end
                printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    assert process.returncode == 0
    assert printed.decode().split() == [name for name, _ in scripts("workflows.migrations")]


@pytest.mark.parametrize("state", ["starts up", "not there"])
async def test_a_database_that_stays_away_is_given_up_after_the_limit(settings, capsys, state):
    clock = FakeClock()
    async with refusing("57P03", "the database system is starting up") as port:
        url = f"postgresql://u@127.0.0.1:{port if state == 'starts up' else free_port()}/m?sslmode=disable"
        with pytest.raises((asyncpg.CannotConnectNowError, OSError)):
            await migrate.migrate(replace(settings, database_url=Secret(url)), clock)

    assert clock.passed == migrate.WAIT_LIMIT.total_seconds()
    assert capsys.readouterr().err.count("waits up to") == 1


async def test_a_login_that_is_refused_is_not_tried_again(settings, capsys):
    clock = FakeClock()
    async with refusing("28P01", "password authentication failed") as port:
        url = f"postgresql://u@127.0.0.1:{port}/m?sslmode=disable"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await migrate.migrate(replace(settings, database_url=Secret(url)), clock)

    assert (clock.passed, capsys.readouterr().err) == (0, "")
