"""The way to the control database is cut in the middle of a script, for longer than a host may be silent."""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from engine import communicator, controller, taskhost
from tests.chaos.road_invariants import EFFECT, PROBE, violations
from tests.support import fleet as fleets
from tests.support.fleet import Fleet, fleet
from tests.support.launching import until
from tests.support.line import Line, line_to

pytestmark = pytest.mark.newest

HEARTBEAT = 1.0
GATED = f"""
{EFFECT};
do $$ begin
    while not exists (select from gate) loop perform pg_sleep(0.05); end loop;
end $$
"""


@pytest.fixture
async def line(targets):
    async with line_to(targets.port) as made:
        yield made


@pytest.fixture
async def here(settings, db, targets, tmp_path, line, monkeypatch):
    """The core looks more often than hosts beat, as it does outside of tests."""
    monkeypatch.setattr(fleets, "HEARTBEAT", HEARTBEAT)
    for part in (communicator, controller):
        monkeypatch.setattr(part, "LOOK", timedelta(seconds=0.05))
    async with fleet(settings, db, targets, tmp_path, databases=2, start=False) as made:
        for name in made.databases:
            await made.query(name, PROBE)
            await made.query(name, "create table gate ()")
        endpoint = msgspec.to_builtins(made.account.endpoint()) | {"port": line.port}
        await made.core(endpoint=endpoint)
        await made.host(endpoint=endpoint)
        yield made


async def running(here: Fleet) -> UUID:
    """What it writes is written, and it waits at the gate."""
    await here.job("gated", GATED)
    run = await here.start("gated")

    async def waits() -> bool:
        pids = [task["backend_pid"] for task in await here.tasks(run)]
        sleeping = "select from pg_stat_activity where pid = any($1) and wait_event = 'PgSleep'"
        return len(await here.account.fetch(sleeping, pids)) == len(here.databases)

    await until(waits)
    return run


async def open_gate(here: Fleet) -> None:
    for name in here.databases:
        await here.query(name, "insert into gate default values")


async def test_an_outage_costs_nobody_an_attempt(here: Fleet, line: Line):
    run = await running(here)

    line.cut()
    await asyncio.sleep((communicator.BEATS + 0.5) * HEARTBEAT)
    line.mend()
    await beats(here)
    await open_gate(here)

    assert await here.ended(run) == "Succeeded"
    assert [task["attempt"] for task in await here.tasks(run)] == [1, 1]
    assert await violations(here) == []


async def test_a_commit_that_nobody_could_be_told_of_is_done_once(
    here: Fleet, line: Line, monkeypatch
):
    monkeypatch.setattr(taskhost, "INTENT_LIMIT", 0.3)
    run = await running(here)

    line.cut()
    await open_gate(here)
    await asyncio.sleep(HEARTBEAT)
    line.mend()

    assert await here.ended(run) == "Succeeded"
    assert await here.everywhere("select count(*) from probe") == [1, 1]
    assert await violations(here) == []


async def beats(here: Fleet) -> None:
    """The host is heard of again."""
    beat = "select heartbeat_at from jobs_internal.host"
    before = await here.root.fetchval(beat)

    async def renewed() -> bool:
        return await here.root.fetchval(beat) > before

    await until(renewed)
