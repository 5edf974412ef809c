"""A fleet, or an engine as processes, that the tests of a module share until one of them fails.

A module says what it needs by a fixture `make_fleet` or `make_processes`: a function that returns a context manager.
"""

import pytest_asyncio

from tests.support.engine_processes import EngineProcesses
from tests.support.fleet import Shared


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_fleet(make_fleet):
    shared = Shared(make_fleet)
    yield shared
    await shared.close()


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(shared_fleet, request):
    async with shared_fleet.lent(lambda: request.session.testsfailed) as fleet:
        yield fleet


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_processes(make_processes):
    shared = Shared(make_processes, EngineProcesses.log)
    yield shared
    await shared.close()


@pytest_asyncio.fixture(loop_scope="module")
async def processes(shared_processes, request):
    """No failpoint is armed, and no end is recorded."""
    async with shared_processes.lent(lambda: request.session.testsfailed) as processes:
        processes.arm({})
        processes.ends.clear()
        yield processes
