"""A fleet whose databases count the effects of scripts, shared by the tests of a module until one of them fails.

A module imports `shared_fleet` and `databases` and marks its tests `together`. Each test finds one empty table `effect` in every database.
"""

import contextlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.fleet import Fleet, Shared, plane, start_fleet

DATABASES = 8
COUNT = "select count(*) from effect"
RESET = "drop table if exists effect, absent; create table effect (n int)"
FORGET = """
update jobs_internal.instance set same_error_limit = 50;
update jobs_internal.job set system = false where name = 'job';
select jobs.sp_delete_job(j.job_name, force => true) from jobs.jobs j where j.job_name = 'job';
"""

together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_fleet(postgres, targets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects")

    @contextlib.asynccontextmanager
    async def make() -> AsyncIterator[Fleet]:
        async with (
            plane(postgres) as (settings, db),
            start_fleet(settings, db, targets, folder, databases=DATABASES) as fleet,
        ):
            yield fleet

    shared = Shared(make)
    yield shared
    await shared.close()


@pytest_asyncio.fixture(loop_scope="module")
async def databases(shared_fleet, request):
    async with shared_fleet.lent(lambda: request.session.testsfailed) as fleet:
        for name in fleet.databases:
            await fleet.execute(name, RESET)
        await fleet.root.execute(FORGET)
        yield fleet
