"""The server of the control database crashes before what an encore reserved has reached its disk: it begins once more."""

import asyncio
import os
import signal
from collections.abc import Iterator

import asyncpg
import pytest

from engine.host.task_runner import Errands
from muster.core import failpoints
from tests.chaos.road_invariants import EFFECT, PROBE, violations
from tests.support import fleet as fleets
from tests.support import postgres as server
from tests.support.fleet import Fleet, fleet
from tests.support.launching import until

pytestmark = pytest.mark.newest

WRITER = "select pid from pg_stat_activity where backend_type = 'walwriter'"
RESERVED = "select count(*) from jobs_internal.task where lifecycle = 'Created'"


@pytest.fixture
def crashing() -> Iterator[server.Postgres]:
    with server.running(migrated=False, durable=True) as made:
        yield made


@pytest.fixture
async def here(settings, db, crashing, tmp_path, monkeypatch):
    """Nobody says anything while it happens: a word that is waited for takes those before it along to the disk."""
    monkeypatch.setattr(fleets, "HEARTBEAT", 8.0)
    monkeypatch.setattr(Errands, "ready", lambda _: None)
    async with fleet(settings, db, crashing, tmp_path, databases=2) as made:
        for name in made.databases:
            await made.query(name, PROBE)
        yield made


class Crash:
    """At the first passage, with nothing written to the disk that nobody waited for."""

    def __init__(self, here: Fleet, writer: int) -> None:
        self._here = here
        self._writer = writer
        self.lost: int | None = None
        self._begun = False

    async def __call__(self) -> None:
        if self._begun:
            return
        self._begun = True
        here, machine = self._here, self._here.targets.machine
        before = await here.root.fetchval(RESERVED)
        crashing = asyncio.create_task(asyncio.to_thread(machine.crash))
        await asyncio.sleep(0.3)
        os.kill(self._writer, signal.SIGCONT)  # it only learns that it is over
        await crashing
        await machine.revive()
        await here.renew()
        self.lost = before - await here.root.fetchval(RESERVED)


async def quiet(here: Fleet) -> None:
    """Nobody writes anything, for a while."""

    async def written() -> str:
        return await here.root.fetchval("select pg_current_wal_insert_lsn()::text")

    async def rests() -> bool:
        before = await written()
        await asyncio.sleep(0.5)
        return await written() == before

    await until(rests)


async def the_writer(postgres: server.Postgres) -> int:
    """The process that writes to the disk what nobody waits for."""
    root = await asyncpg.connect(postgres.url("postgres", postgres.root))
    try:
        return await root.fetchval(WRITER)
    finally:
        await root.close()


async def test_what_a_crash_took_back_is_reserved_again(here: Fleet):
    await here.job("effect", EFFECT)
    core, _ = here.alive
    await until(lambda: core.living.hosting.view.hosts)
    assert await here.ended(await here.start("effect")) == "Succeeded"
    await quiet(here)
    writer = await the_writer(here.targets)
    crash = Crash(here, writer)

    with failpoints.armed({"host.taken": crash}):
        async with here.kept():
            os.kill(writer, signal.SIGSTOP)
            run = await here.start("effect")
            await until(lambda: crash.lost is not None)
            assert await here.ended(run, 60) == "Succeeded"

    assert crash.lost == len(here.databases)
    assert [task["attempt"] for task in await here.tasks(run)] == [1, 1]
    assert await violations(here) == []
