"""A control database and who speaks to it; a file that needs another one says so itself."""

import pytest

from engine.db.control_db import Q
from tests.support.control_db import installed
from tests.support.definitions import a_definer
from tests.support.executions import a_session
from tests.support.execution_fixture import an_execution


@pytest.fixture
async def account(settings, db, control):
    return await installed(settings, db, control)


@pytest.fixture
async def owner(account):
    async with a_session(account) as session:
        yield session


@pytest.fixture
async def engine(account):
    session = await account.connect("engine")
    await session.execute(Q.session_settings)
    yield session
    await session.close()


@pytest.fixture
async def admin(account):
    async with a_definer(account) as made:
        yield made


@pytest.fixture
async def execution(owner, engine):
    return await an_execution(owner, engine)
