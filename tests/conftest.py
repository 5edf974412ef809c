"""Wiring only: see tests/support/postgres.py for what the fixtures give."""

import base64
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from muster.core.db import Database, open_database
from muster.core.settings import Secret, Settings
from tests.support import postgres as server


# A busy machine is no failure: how long an example takes is not what is tested.
hypothesis.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.load_profile("house")


@pytest.fixture(scope="session")
def postgres() -> Iterator[server.Postgres]:
    with server.running() as running:
        yield running


@pytest.fixture(scope="session")
def targets() -> Iterator[server.Postgres]:
    with server.running(migrated=False, binaries=server.THEIRS) as running:
        yield running


@pytest.fixture(scope="session")
def control(request: pytest.FixtureRequest) -> Iterator[server.Postgres]:
    if server.THEIRS == server.OURS:
        yield request.getfixturevalue("targets")
        return
    with server.running(migrated=False) as running:
        yield running


@pytest.fixture
def database_url(postgres: server.Postgres) -> Iterator[str]:
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=Secret(database_url),
        keys=Secret("test:" + base64.b64encode(bytes(32)).decode()),
        target_allow=("127.0.0.0/8",),
        lease=timedelta(seconds=3),
        step_limit=timedelta(seconds=2),
        poll_busy=timedelta(milliseconds=50),
        poll_idle=timedelta(milliseconds=200),
        sweep=timedelta(milliseconds=200),
        retry_base=timedelta(milliseconds=20),
        retry_ceiling=timedelta(milliseconds=200),
    )


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    database = await open_database(settings, application="muster-test")
    yield database
    await database.close()
