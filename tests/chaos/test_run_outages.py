"""The way to the control database is cut in the middle of a script, for longer than a host may be silent."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from engine.core import communicator
from engine.core import controller
from engine.host import task_runner
from tests.chaos.run_invariants import EFFECT, PROBE, violations
from tests.support import fleet as fleets
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until
from tests.support.tcp_proxy import TcpProxy, proxy_to

pytestmark = pytest.mark.newest

HEARTBEAT = 1.0
GATED = f"""
{EFFECT};
do $$ begin
    while not exists (select from gate) loop perform pg_sleep(0.05); end loop;
end $$
"""


@pytest.fixture
async def proxy(targets):
    async with proxy_to(targets.port) as made:
        yield made


@pytest.fixture
async def gated_fleet(settings, db, targets, tmp_path, monkeypatch):
    """The core looks more often than hosts beat, as it does outside of tests."""
    monkeypatch.setattr(fleets, "HEARTBEAT", HEARTBEAT)
    for service in (communicator, controller):
        monkeypatch.setattr(service, "POLL_INTERVAL", timedelta(seconds=0.05))
    async with start_fleet(settings, db, targets, tmp_path, databases=2, start=False) as made:
        for name in made.databases:
            await made.query(name, PROBE)
            await made.query(name, "create table gate ()")
        yield made


@pytest.fixture
async def fleet(gated_fleet: Fleet, proxy: TcpProxy):
    """The core and the host are on the line."""
    await gated_fleet.core(endpoint=over(gated_fleet, proxy))
    await gated_fleet.host(endpoint=over(gated_fleet, proxy))
    return gated_fleet


def over(fleet: Fleet, proxy: TcpProxy) -> dict[str, Any]:
    return msgspec.to_builtins(fleet.account.endpoint()) | {"port": proxy.port}


async def running(fleet: Fleet) -> UUID:
    """What it writes is written, and it waits at the gate."""
    await fleet.job("gated", GATED)
    run = await fleet.start("gated")

    async def waits() -> bool:
        pids = [task["backend_pid"] for task in await fleet.tasks(run)]
        sleeping = "select from pg_stat_activity where pid = any($1) and wait_event = 'PgSleep'"
        return len(await fleet.account.fetch(sleeping, pids)) == len(fleet.databases)

    await until(waits)
    return run


async def open_gate(fleet: Fleet) -> None:
    for name in fleet.databases:
        await fleet.query(name, "insert into gate default values")


async def test_an_outage_costs_nobody_an_attempt(fleet: Fleet, proxy: TcpProxy):
    run = await running(fleet)

    proxy.cut()
    await asyncio.sleep((communicator.MAX_MISSED_HEARTBEATS + 0.5) * HEARTBEAT)
    proxy.restore()
    await beats(fleet)
    await open_gate(fleet)

    assert await fleet.ended(run) == "Succeeded"
    assert [task["attempt"] for task in await fleet.tasks(run)] == [1, 1]
    assert await violations(fleet) == []


async def test_a_commit_that_nobody_could_be_told_of_is_not_sent(
    fleet: Fleet, proxy: TcpProxy, monkeypatch
):
    monkeypatch.setattr(task_runner, "INTENT_TIMEOUT", 0.3)
    run = await running(fleet)

    proxy.cut()
    await open_gate(fleet)
    await until(lambda: fleet.alive[1].living.workers.running == 0)
    proxy.restore()

    assert await fleet.ended(run) == "Succeeded"
    told = [(t["attempt"], t["lifecycle"], t["end_reason"]) for t in await fleet.tasks(run)]
    assert told == [(1, "Canceled", "HostStopped"), (2, "Succeeded", None)] * 2
    assert {target["free_attempts"] for target in await fleet.targets_of(run)} == {1}
    assert await violations(fleet) == []


async def test_a_host_that_is_cut_off_commits_nothing_that_nobody_knows_of(
    gated_fleet: Fleet, proxy: TcpProxy, monkeypatch
):
    """It lives and reaches its targets, and others take over what it had."""
    monkeypatch.setattr(task_runner, "INTENT_TIMEOUT", 0.3)
    await gated_fleet.core()
    cut_off = await gated_fleet.host(endpoint=over(gated_fleet, proxy))
    run = await running(gated_fleet)

    proxy.cut()
    await open_gate(gated_fleet)
    await until(lambda: cut_off.living.workers.running == 0)
    await gated_fleet.host()

    assert await gated_fleet.ended(run) == "Succeeded"
    told = [(t["attempt"], t["lifecycle"], t["end_reason"]) for t in await gated_fleet.tasks(run)]
    assert told == [(1, "Failed", "HostLost"), (2, "Succeeded", None)] * 2
    assert await violations(gated_fleet) == []


async def beats(fleet: Fleet) -> None:
    """The host is heard of again."""
    beat = "select heartbeat_at from jobs_internal.host"
    before = await fleet.root.fetchval(beat)

    async def renewed() -> bool:
        return await fleet.root.fetchval(beat) > before

    await until(renewed)
