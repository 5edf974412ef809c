"""A fleet on one small server that its application nearly fills: all is done, and nobody is crowded out by us."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from tests.support import postgres
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until
from tests.support.postgres import Postgres

pytestmark = [pytest.mark.newest, pytest.mark.targets]

OURS = "select count(*) from pg_stat_activity where application_name like 'muster%'"
RESERVED = 3  # for superusers, by default
LOOK = 0.003  # seconds


@dataclass
class Seen:
    ours: int = 0  # at most, at one time
    looks: int = 0
    callers: int = 0  # who connected, for the application


@pytest.fixture
def small(request: pytest.FixtureRequest) -> Iterator[tuple[Postgres, int]]:
    most = str(request.param)
    with postgres.running(
        migrated=False, binaries=postgres.THEIRS, max_connections=most
    ) as running:
        yield running, request.param


@pytest.mark.parametrize(
    ("small", "databases", "budget"),
    [
        pytest.param(12, 40, None, id="40 databases, 12 connections"),
        pytest.param(
            14,
            40,
            4,
            id="40 databases, 14 connections, 4 of them given to us",
            marks=pytest.mark.slow,
        ),
        pytest.param(30, 250, None, id="250 databases, 30 connections", marks=pytest.mark.slow),
    ],
    indirect=["small"],
)
async def test_a_small_server_has_room_for_everybody(
    settings, db, account, small, tmp_path, databases, budget
):
    server, most = small
    async with start_fleet(
        settings, db, server, tmp_path, databases=databases, max_connections=budget, account=account
    ) as fleet:
        await group(fleet, "server", {"target_type": "SqlServer"}, EXCEPT_POSTGRES)
        await group(fleet, "nobody", {"target_type": "SqlSchema", "schema_pattern": "nobody"})
        await fleet.job("main", "create table t ()", group="server")
        for name in LISTED:
            await fleet.job(name, "select 1", group="nobody", options={"allowEmpty": True})
        share = budget or 2
        taken = most - RESERVED - share - 3  # also there: who made the fleet, who looks, who calls

        async with crowded(server, taken) as seen:
            run = await fleet.start("main")
            await until(lambda: begun(fleet, run))
            others = [row[0] for row in await fleet.root.fetch(START_ALL, LISTED)]
            for each in (run, *others):
                await fleet.ended(each, 120)

        observed = await fleet.root.fetchval("select budget from jobs_internal.server_contact")
        tasks = await fleet.tasks(run)
        assert await fleet.lifecycles(run) == {"Succeeded": databases}
        assert {(task["attempt"], task["lifecycle"]) for task in tasks} == {(1, "Succeeded")}
        assert {await fleet.lifecycle(other) for other in others} == {"Succeeded"}
        assert 1 <= seen.ours <= (budget or observed) == share, seen
        assert seen.looks > databases and seen.callers > databases / 4, seen


LISTED = [f"listed {number}" for number in range(2)]  # jobs that only look, both at once
START_ALL = "select jobs.sp_start_job(name) from unnest($1::text[]) name"
EXCEPT_POSTGRES = {
    "membership_type": "Exclude", "target_type": "SqlDatabase", "database_name": "postgres",
}  # fmt: skip


async def begun(fleet: Fleet, run: UUID) -> bool:
    return (await fleet.lifecycles(run))["Succeeded"] > 0


async def group(fleet: Fleet, name: str, *members: dict[str, str]) -> None:
    await fleet.call("sp_add_target_group", target_group_name=name)
    for member in members:
        await fleet.call(
            "sp_add_target_group_member", target_group_name=name, server_name="fleet", **member
        )


@contextlib.asynccontextmanager
async def crowded(server: Postgres, taken: int) -> AsyncIterator[Seen]:
    """The application keeps so many sessions, and opens another one over and over; a refusal ends it all."""
    seen, url = Seen(), server.url("postgres", server.application)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(taken):
            kept = await asyncpg.connect(url, timeout=10)
            stack.push_async_callback(kept.close)
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(each) for each in (look(server, seen), call(url, seen))]
            yield seen
            for each in both:
                each.cancel()


async def look(server: Postgres, seen: Seen) -> None:
    root = await asyncpg.connect(server.url("postgres", server.root))
    try:
        while True:
            seen.ours = max(seen.ours, await root.fetchval(OURS))
            seen.looks += 1
            await asyncio.sleep(LOOK)
    finally:
        root.terminate()


async def call(url: str, seen: Seen) -> None:
    while True:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            await connection.fetchval("select 1")
            seen.callers += 1
        finally:
            await connection.close()
