"""Large plans, which take long: what else must not wait for them, and what becomes of one that is broken off."""

import pytest

from engine.core.runs import planner
from engine.core.main import Core
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until
from tests.support.tcp_proxy import proxy_to

pytestmark = pytest.mark.newest

LONG = """
create function jobs_internal.takes_long() returns trigger language plpgsql as $$
begin
    perform pg_catalog.pg_sleep(120);
    return null;
end $$;
create trigger takes_long before insert on jobs_internal.target_execution
    for each statement execute function jobs_internal.takes_long();
"""
AT_WORK = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event = 'PgSleep' and query like '%plan_step%'
"""


@pytest.fixture
async def proxy(targets):
    """Between the engine and its control database."""
    async with proxy_to(targets.port) as made:
        yield made


@pytest.fixture
async def fleet(settings, db, targets, tmp_path, proxy, monkeypatch):
    monkeypatch.setattr(planner, "MAX_INLINE_TARGETS", 2)
    endpoint = {"host": "127.0.0.1", "port": proxy.port, "sslMode": "disable"}
    async with start_fleet(settings, db, targets, tmp_path, endpoint=endpoint) as made:
        await made.root.execute(LONG)
        yield made


async def plans_are_written(fleet: Fleet, jobs: int) -> None:
    """So many are wanted, and some are at work."""
    for number in range(jobs):
        await fleet.job(f"large {number}", "select 1")
        await fleet.start(f"large {number}")
    steps = "select count(*) from jobs_internal.step_execution"

    async def reached() -> bool:
        return await fleet.root.fetchval(steps) == jobs and await at_work(fleet) >= min(jobs, 2)

    await until(reached)


async def at_work(fleet: Fleet) -> int:
    return await fleet.root.fetchval(AT_WORK)


async def test_the_heart_waits_for_no_plan(fleet: Fleet):
    await plans_are_written(fleet, 6)
    read = "select heartbeat_at from jobs_internal.instance"
    before = await fleet.root.fetchval(read)

    async def beats() -> bool:
        return await fleet.root.fetchval(read) > before

    for _ in range(3):
        await until(beats)
        before = await fleet.root.fetchval(read)
    assert await at_work(fleet) == 2


async def test_a_plan_that_the_engine_breaks_off_ends_at_the_server(fleet: Fleet):
    await plans_are_written(fleet, 1)

    (core,) = [one for one in fleet.alive if isinstance(one.living, Core)]
    await fleet.kill(core)

    await until(lambda: nothing_is_at_work(fleet))


async def test_a_plan_whose_engine_died_ends_at_the_server(fleet: Fleet, proxy):
    await plans_are_written(fleet, 1)

    proxy.cut()

    await until(lambda: nothing_is_at_work(fleet))


async def nothing_is_at_work(fleet: Fleet) -> bool:
    return await at_work(fleet) == 0
